"""The roll call: who is there, what they serve, who leaves, and who should rest."""

from typing import Any

import pytest

from schemas.messages import Pulse
from supervisor.fleet import HEARTBEAT_US, LOST_US, REST_S, SUSPECT_US, Order
from supervisor.steering import FAILURES_TO_REST
from supervisor.workers import WorkerState
from tests.role_builders import contract
from tests.unit.roll_call_field import W1, W2, Field, reasons, served

# ---- who is there ------------------------------------------------------------------------------------------------


def test_who_announced_itself_brings_its_slots_to_its_pool() -> None:
    around = Field()

    around.announce(W1)
    around.announce(W2, slots=3)

    assert around.fleet.slots("executor") == 5
    assert around.fleet.live_pools() == {"executor"}
    assert around.fleet.pool_of(W1) == "executor"
    assert around.fleet.pool_of("nobody") == ""


def test_a_heartbeat_of_somebody_unknown_is_answered_with_announce_again() -> None:
    around = Field()

    lost, orders = around.beat()

    assert (lost, orders) == ([], [Order("executor", W1, announce=True)])
    assert around.fleet.workers == {}


def test_a_heartbeat_of_another_announcement_is_answered_with_announce_again() -> None:
    around = Field()
    around.announce()

    assert around.beat(announcement="newer")[1] == [Order("executor", W1, announce=True)]
    assert around.beat()[1] == []


def test_a_contract_under_a_built_in_name_is_refused_and_gets_no_work() -> None:
    around = Field()

    refused = around.announce(contracts=(served(contract("lint.fix", pool="executor")),))

    assert "lint.fix@1 is already known with another schema" in refused
    assert around.fleet.slots("executor") == 0
    assert not around.fleet.live_pools()


def test_a_pool_whose_name_cannot_be_a_queue_is_refused_and_not_listed() -> None:
    around = Field()

    refused = around.announce(pool="Not A Pool")

    assert refused.startswith("'Not A Pool' cannot name a pool.")
    assert around.fleet.workers == {}


def test_a_contract_of_another_pool_is_refused() -> None:
    around = Field()

    refused = around.announce(contracts=(served(contract(pool="counter")),))

    assert refused == "count.words@1 belongs to the pool 'counter', not 'executor'."


@pytest.mark.parametrize("broken", [{"type": "nonsense"}, {"$ref": "https://example.org/schema"}])
def test_a_contract_whose_schema_is_none_is_refused(broken: dict[str, Any]) -> None:
    around = Field()
    document = contract(pool="executor").model_dump(mode="json") | {"output": broken}

    refused = around.announce(contracts=(served(document),))

    assert "count.words@1: its input or output is no JSON Schema" in refused
    assert not around.fleet.serves("count.words@1")


def test_a_contract_is_served_while_somebody_is_there_who_announced_it() -> None:
    around = Field()
    around.announce(contracts=(served(contract(pool="executor")),))
    there = around.fleet.serves("count.words@1")

    around.fleet.goodbye(W1, "drained")

    assert (there, around.fleet.serves("count.words@1")) == (True, False)
    assert "count.words@1" in around.fleet.registry


def test_a_worker_that_drains_or_rests_takes_no_new_work() -> None:
    around = Field()
    around.announce()

    for said in ("draining", "resting"):
        around.beat(state=said)
        assert (str(around.state()), around.fleet.slots("executor")) == (said, 0)
    around.beat(state="ready")
    assert around.fleet.slots("executor") == 2


# ---- goodbye -----------------------------------------------------------------------------------------------------


def test_a_goodbye_ends_all_leases_at_once() -> None:
    around = Field()
    around.announce()
    around.hold(action_id="a-1")
    around.hold(action_id="a-2")
    around.hold(W2, action_id="a-3")

    lost = around.fleet.goodbye(W1, "SIGTERM")

    assert reasons(lost) == [("a-1", "SIGTERM"), ("a-2", "SIGTERM")]
    assert (around.state(), around.fleet.slots("executor")) == (WorkerState.GONE, 0)


def test_a_heartbeat_that_the_goodbye_overtook_does_not_bring_it_back() -> None:
    around = Field()
    around.announce()
    around.fleet.goodbye(W1, "SIGTERM")

    around.beat(W1, ("a-1", 1))

    assert around.state() is WorkerState.GONE


def test_who_left_long_ago_is_forgotten_and_who_is_there_is_not() -> None:
    around = Field()
    around.announce(W1)
    around.announce(W2)
    around.fleet.goodbye(W1, "SIGTERM")

    kept = around.fleet.forget_gone(before=around.now)
    gone = around.fleet.forget_gone(before=around.now + 1)

    assert (kept, gone, list(around.fleet.workers)) == ([], [W1], [W2])


# ---- pulse -------------------------------------------------------------------------------------------------------


def test_what_fails_often_here_and_works_elsewhere_rests_for_a_while() -> None:
    around = Field()
    around.announce(W1)
    around.announce(W2)
    around.beat(W2, pulse={"lint.fix@1": Pulse(done=9)})

    orders = around.beat(W1, pulse={"lint.fix@1": Pulse(failed=FAILURES_TO_REST)})[1]

    reason = f"lint.fix@1 failed {FAILURES_TO_REST} times here and works elsewhere"
    assert orders == [Order("executor", W1, rest_s=REST_S, reason=reason)]
    assert (around.state(W1), around.fleet.slots("executor")) == (WorkerState.RESTING, 2)


@pytest.mark.parametrize(
    ("here", "elsewhere"),
    [
        (Pulse(failed=FAILURES_TO_REST - 1), Pulse(done=9)),
        (Pulse(failed=FAILURES_TO_REST, done=FAILURES_TO_REST), Pulse(done=9)),
        (Pulse(failed=FAILURES_TO_REST), Pulse(failed=9, done=1)),
        (Pulse(failed=FAILURES_TO_REST), Pulse()),
    ],
    ids=["seldom", "mostly well", "elsewhere too", "nobody else did it"],
)
def test_nobody_rests_who_does_no_worse_than_others(here: Pulse, elsewhere: Pulse) -> None:
    around = Field()
    around.announce(W1)
    around.announce(W2)
    around.beat(W2, pulse={"lint.fix@1": elsewhere})

    assert around.beat(W1, pulse={"lint.fix@1": here})[1] == []


def test_a_rest_ends_and_begins_again_only_after_as_many_new_failures() -> None:
    around = Field()
    around.announce(W1)
    around.announce(W2)
    failing = {"lint.fix@1": Pulse(failed=FAILURES_TO_REST)}
    around.beat(W2, pulse={"lint.fix@1": Pulse(done=9)})
    around.beat(W1, pulse=failing)
    around.announce(W1)  # as after a reconnect: it does not end the rest
    resting = around.state(W1)

    around.pass_time(REST_S)
    for worker, pulse in ((W2, {"lint.fix@1": Pulse(done=9)}), (W1, failing)):
        orders = around.beat(worker, pulse=pulse)[1]

    assert resting is WorkerState.RESTING
    assert (around.state(W1), orders) == (WorkerState.READY, [])
    again = around.beat(W1, pulse={"lint.fix@1": Pulse(failed=2 * FAILURES_TO_REST)})[1]
    assert [one.rest_s for one in again] == [REST_S]


def test_a_heartbeat_period_fits_twice_into_the_time_before_suspicion() -> None:
    assert 2 * HEARTBEAT_US < SUSPECT_US < 3 * HEARTBEAT_US < LOST_US

"""The roll call: who is there, what they hold, and who is lost, on the lease clock only."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from schemas.contracts import ContractRegistry
from schemas.messages import Pulse, RoleAnnounced, RoleHeartbeat, Running, ServedContract
from supervisor.fleet import HEARTBEAT_US, LOST_US, REST_S, SUSPECT_US, Fleet, Lost, Order
from supervisor.leases import Lease
from supervisor.steering import FAILURES_TO_REST
from supervisor.workers import WorkerState
from tests.role_builders import contract

SECOND = 1_000_000
W1, W2 = "host-1-1", "host-2-1"


@dataclass
class Field:
    """A fleet and the time around it; probes come round every second unless the broker is away."""

    fleet: Fleet = field(default_factory=lambda: Fleet(ContractRegistry.builtin()))
    now: int = 1_000 * SECOND

    def __post_init__(self) -> None:
        self.pass_time(1)

    def pass_time(self, seconds: float, *, probes: bool = True) -> list[Lost]:
        """Let time pass, second by second; who was found lost."""
        lost: list[Lost] = []
        whole, rest = divmod(int(seconds * SECOND), SECOND)
        for step in [SECOND] * whole + [rest] * (rest > 0):
            self.now += step
            if probes:
                self.fleet.probe_returned(self.now, sent_at=self.now)
            if self.fleet.steady_since(self.now) is not None:
                lost += self.fleet.silent()
        return lost

    def announce(self, instance: str = W1, **changes: Any) -> str:
        return self.fleet.announced(instance, announced(**changes), self.now)

    def beat(
        self, instance: str = W1, *running: tuple[str, int], **changes: Any
    ) -> tuple[list[Lost], list[Order]]:
        """A heartbeat that arrives at once; `running` are (action, attempt)."""
        sent_at = changes.pop("sent_at", self.now)
        listed = tuple(Running(action_id=action_id, attempt=attempt) for action_id, attempt in running)
        said = {
            "role": "executor",
            "pool": "executor",
            "host": "host",
            "pid": 1,
            "slots": 2,
            "running": listed,
            "announcement": "digest",
        }
        return self.fleet.heartbeat(instance, RoleHeartbeat(**said | changes), sent_at=sent_at, now=self.now)

    def hold(self, instance: str = W1, action_id: str = "a-1", attempt: int = 1) -> Lease:
        lease = Lease("task", action_id, attempt, instance, accepted_at=self.now)
        self.fleet.leases.add(lease)
        return lease

    def state(self, instance: str = W1) -> WorkerState:
        return self.fleet.workers[instance].state


def announced(**changes: Any) -> RoleAnnounced:
    said = {
        "role": "executor",
        "pool": "executor",
        "host": "host",
        "pid": 1,
        "version": "1",
        "slots": 2,
        "digest": "digest",
    }
    return RoleAnnounced(**said | changes)


def served(document: Any) -> ServedContract:
    raw = document if isinstance(document, dict) else document.model_dump(mode="json")
    return ServedContract(name=raw["name"], version=raw["version"], digest="d", document=raw)


def reasons(lost: list[Lost]) -> list[tuple[str, str]]:
    return [(one.lease.action_id, one.reason) for one in lost]


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


# ---- heartbeats and leases ---------------------------------------------------------------------------------------


def test_a_lease_that_heartbeats_list_is_held() -> None:
    around = Field()
    around.announce()
    around.hold()

    for _ in range(5):
        around.pass_time(5)
        assert around.beat(W1, ("a-1", 1)) == ([], [])


def test_a_lease_that_is_missing_from_more_than_two_later_heartbeats_is_not_held() -> None:
    around = Field()
    around.announce()
    around.hold()

    found = []
    for _ in range(3):
        around.pass_time(5)
        found.append(reasons(around.beat()[0]))

    assert found == [[], [], [("a-1", "its heartbeats do not list it any more")]]


def test_a_lease_that_is_listed_again_was_held_all_along() -> None:
    around = Field()
    around.announce()
    around.hold()

    for listed in ((), (), (("a-1", 1),), (), ()):
        around.pass_time(5)
        assert around.beat(W1, *listed)[0] == []


def test_heartbeats_from_before_the_acceptance_say_nothing_about_it() -> None:
    around = Field()
    around.announce()
    before = around.now - SECOND
    around.hold()

    for _ in range(5):
        around.pass_time(5)
        assert around.beat(sent_at=before)[0] == []


def test_a_missing_lease_is_given_up_only_after_what_was_sent_before_has_been_read() -> None:
    around = Field()
    around.announce()
    around.hold()
    read_at = around.now

    found = []
    for _ in range(5):
        around.pass_time(5, probes=False)
        around.fleet.probe_returned(around.now, sent_at=read_at)  # the queue is long: old probes come round
        found += around.beat()[0]
    around.pass_time(5)

    assert found == []
    assert reasons(around.beat()[0]) == [("a-1", "its heartbeats do not list it any more")]


def test_a_holder_whose_handoff_is_being_looked_at_is_not_lost() -> None:
    around = Field()
    around.announce()
    around.hold()
    around.fleet.leases.set_handing_off("a-1", 1, W1, is_so=True)

    lost = [one for _ in range(6) for one in (around.pass_time(5), around.beat()[0]) if one]
    left = around.fleet.goodbye(W1, "drained")

    assert (lost, left) == ([], [])
    around.fleet.leases.set_handing_off("a-1", 1, W1, is_so=False)
    assert reasons(around.pass_time(1)) == [("a-1", "its process left")]


def test_what_runs_without_a_lease_is_stopped_at_the_second_heartbeat_that_lists_it() -> None:
    around = Field()
    around.announce()

    around.pass_time(5)
    first = around.beat(W1, ("a-1", 2))[1]
    around.pass_time(5)
    second = around.beat(W1, ("a-1", 2))[1]

    assert (first, second) == ([], [Order("executor", W1, stop=("a-1", 2), reason="no lease")])


def test_what_runs_is_not_stopped_while_its_acceptance_may_still_be_in_the_queue() -> None:
    around = Field()
    around.announce()
    read_at = around.now

    orders = []
    for _ in range(4):
        around.pass_time(5, probes=False)
        around.fleet.probe_returned(around.now, sent_at=read_at)
        orders += around.beat(W1, ("a-1", 1))[1]
    around.hold()
    around.pass_time(5)

    assert (orders, around.beat(W1, ("a-1", 1))[1]) == ([], [])


def test_a_lease_of_another_attempt_is_no_lease() -> None:
    around = Field()
    around.announce()
    around.hold(attempt=2)
    for _ in range(2):
        around.pass_time(5)
        orders = around.beat(W1, ("a-1", 1), ("a-1", 2))[1]

    assert orders == [Order("executor", W1, stop=("a-1", 1), reason="no lease")]


# ---- silence -----------------------------------------------------------------------------------------------------


def test_two_missed_heartbeats_make_a_worker_suspect_and_three_lost_with_its_leases() -> None:
    around = Field()
    around.announce()
    around.hold()

    around.pass_time(SUSPECT_US // SECOND)
    early = (around.state(), around.fleet.slots("executor"))
    around.pass_time(1)
    suspect = (around.state(), around.fleet.slots("executor"))
    lost = around.pass_time((LOST_US - SUSPECT_US) // SECOND)

    assert early == (WorkerState.READY, 2)
    assert suspect == (WorkerState.SUSPECT, 0)
    assert around.state() is WorkerState.LOST
    assert reasons(lost) == [("a-1", "its process was lost")]


def test_a_heartbeat_brings_a_suspect_and_a_lost_worker_back() -> None:
    around = Field()
    around.announce()
    for seconds, state in ((13, WorkerState.SUSPECT), (18, WorkerState.LOST)):
        around.pass_time(seconds)
        assert around.state() is state
        around.beat()
        assert around.state() is WorkerState.READY


def test_an_acceptance_of_a_lost_worker_shows_that_it_lives_and_gives_it_time() -> None:
    around = Field()
    around.announce()
    around.pass_time(18)

    around.fleet.heard(W1)
    around.hold()

    assert around.state() is WorkerState.SUSPECT
    assert around.pass_time(17) == []
    assert reasons(around.pass_time(1)) == [("a-1", "its process was lost")]


def test_an_outage_of_the_broker_makes_nobody_lost() -> None:
    around = Field()
    around.announce()
    around.hold()

    lost = around.pass_time(600, probes=False)
    around.fleet.connection_lost()
    after = around.pass_time(LOST_US // SECOND)

    assert (lost, after) == ([], [])
    assert around.state() is not WorkerState.LOST
    assert reasons(around.pass_time(2)) == [("a-1", "its process was lost")]


def test_a_pause_of_our_own_moves_the_lease_clock_by_a_moment_only() -> None:
    around = Field()
    around.announce()
    before = around.fleet.clock

    around.pass_time(3_600, probes=False)
    around.fleet.probe_returned(around.now, sent_at=around.now)

    assert around.fleet.clock - before == 3 * SECOND
    assert around.fleet.silent() == []


def test_the_lease_clock_never_goes_back_with_the_wall_clock() -> None:
    around = Field()
    before = around.fleet.clock

    around.now -= 3_600 * SECOND
    around.fleet.probe_returned(around.now, sent_at=around.now)

    assert around.fleet.clock == before


def test_the_clock_is_steady_since_the_first_probe_after_a_pause() -> None:
    around = Field()
    start = around.now
    steady = around.fleet.steady_since(around.now)
    around.pass_time(10)
    still = around.fleet.steady_since(around.now)
    around.pass_time(5, probes=False)
    paused = around.fleet.steady_since(around.now)
    around.pass_time(1)

    assert (steady, still, paused) == (start, start, None)
    assert around.fleet.steady_since(around.now) == around.now


def test_a_lease_of_a_process_that_was_never_heard_ends_after_a_full_lease_time() -> None:
    around = Field()
    around.hold("host-9-9")

    early = around.pass_time(LOST_US // SECOND)
    late = around.pass_time(2)

    assert early == []
    assert reasons(late)[0] == ("a-1", "its process was never heard")


def test_a_reconnect_gives_a_process_that_was_never_heard_its_time_once_more() -> None:
    around = Field()
    around.hold("host-9-9")
    around.pass_time(15)

    around.fleet.connection_lost()

    assert around.pass_time(17) == []


def test_a_process_that_announces_itself_after_a_restart_keeps_its_leases() -> None:
    around = Field()
    around.hold(W1)
    around.pass_time(15)

    around.announce()

    assert around.pass_time(10) == []


def test_who_was_there_before_a_restart_is_expected_and_serves_once_it_is_heard() -> None:
    around = Field()
    known = Field()
    known.announce(contracts=(served(contract(pool="executor")),))
    around.fleet.expect(replace(known.fleet.workers[W1], digest=""))
    around.hold()

    expected = (around.fleet.serves("count.words@1"), around.fleet.slots("executor"))
    orders = around.beat(W1, ("a-1", 1))[1]

    assert expected == (True, 0)
    assert orders == [Order("executor", W1, announce=True)]
    assert around.fleet.slots("executor") == 2
    assert set(reasons(around.pass_time(19))) == {("a-1", "its process was lost")}


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

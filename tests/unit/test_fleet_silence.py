"""The roll call: who holds what, and who is lost, on the lease clock only."""

from dataclasses import replace

from supervisor.fleet import LOST_US, SUSPECT_US, Order
from supervisor.workers import WorkerState
from tests.role_builders import contract
from tests.unit.roll_call_field import SECOND, W1, Field, reasons, served

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

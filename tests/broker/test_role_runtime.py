"""The runtime of a role process, seen by its supervisor: announcement, work, orders, repeats, outages, leaving."""

from dataclasses import replace

import pytest

from bus.grants import SigningKey
from bus.metrics import Metrics
from bus.runtime import Patience
from schemas import clock
from schemas.errors import WorkerLostError
from schemas.messages import (
    ActionAccepted,
    ActionStopped,
    AnnouncementWanted,
    LeaseGranted,
    RoleAnnounced,
    RoleDrained,
    RoleRested,
)
from schemas.words import Outcome
from tests.broker.worlds import World
from tests.role_builders import IMPURE, POOL, PURE, SPEC, HeldWorkers, action, done
from tests.role_stage import INSTANCE, RoleStage


@pytest.fixture
async def stage(world: World) -> RoleStage:
    stage = RoleStage(world, await world.bus("host-1-1"))
    await stage.listen()
    return stage


# ---- the roll call ---------------------------------------------------------------------------------------------


async def test_a_process_announces_what_it_serves_before_it_takes_work(stage: RoleStage) -> None:
    await stage.send_work(action())

    async with stage.role(HeldWorkers()):
        await stage.event("action.accepted")

    assert [one.kind for one in stage.heard if one.kind != "role.heartbeat"][:2] == [
        "role.announced",
        "action.accepted",
    ]
    said = RoleAnnounced.model_validate(stage.said("role.announced")[0].body)
    assert (said.role, said.pool, said.slots, said.engines) == ("counter", POOL, 1, {"wc": "1"})
    assert [(one.name, one.digest) for one in said.contracts] == [
        (one.name, one.digest) for one in SPEC.contracts
    ]


async def test_heartbeats_list_what_runs_with_the_workers_last_note(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        idle = await stage.heartbeat(lambda body: True)
        await stage.send_work(action())
        job = await workers.started(1)
        job.note("half way")

        busy = await stage.heartbeat(lambda body: bool(body["running"] and body["running"][0]["note"]))

    assert (idle["running"], idle["state"]) == ([], "ready")
    assert idle["announcement"] == stage.said("role.announced")[0].body["digest"]
    (running,) = busy["running"]
    assert (running["action_id"], running["attempt"], running["note"]) == ("action-1", 1, "half way")
    assert running["contract"] == PURE.ref
    assert busy["sequence"] > idle["sequence"]


async def test_the_pulse_counts_how_each_contract_goes(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        for number, outcome in enumerate(
            (Outcome.NO_CHANGE, Outcome.FAILED, Outcome.DONE, Outcome.CANCELED), 1
        ):
            await stage.send_work(action(number))
            (await workers.started(number)).finish(done(action(number), outcome=outcome))
            await stage.handoff(number)

        beat = await stage.heartbeat(lambda body: not body["running"])

    assert {name: (pulse["done"], pulse["failed"]) for name, pulse in beat["pulse"].items()} == {
        PURE.ref: (2, 1)
    }


async def test_a_process_announces_again_when_asked(stage: RoleStage) -> None:
    async with stage.role(HeldWorkers()):
        await stage.order("announcement.wanted", AnnouncementWanted())

        again = await stage.event("role.announced", 2)

    assert again.body == stage.said("role.announced")[0].body


# ---- accept, then lease ----------------------------------------------------------------------------------------


async def test_an_action_is_accepted_run_and_handed_off_in_the_thread_of_its_request(
    stage: RoleStage,
) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        request = await stage.send_work(action())
        (await workers.started(1)).finish()
        handoff = await stage.handoff()

    accepted, answer = stage.said("action.accepted")[0], stage.said("action.handoff")[0]
    for one in (accepted, answer):
        assert one.correlation_id == request.correlation_id
        assert one.causation_id == request.message_id
        assert (one.traceparent, one.lane, one.attempt) == (
            request.traceparent,
            request.lane,
            request.attempt,
        )
        assert one.sender.instance == INSTANCE
        assert one.ttl_ms is None
    assert (handoff.outcome, handoff.nonce) == (Outcome.NO_CHANGE, action().nonce)
    assert ActionAccepted.model_validate(accepted.body).nonce == action().nonce


async def test_a_full_process_leaves_the_rest_to_others(stage: RoleStage) -> None:
    full, idle = HeldWorkers(), HeldWorkers()
    async with stage.role(full):
        for number in (1, 2, 3):
            await stage.send_work(action(number))
        await full.started(1)

        async with stage.role(idle, instance="host-8-8", settled=False):
            await idle.started(1)
            idle.jobs[0].finish()
            await idle.started(2)

    assert [job.action.action_id for job in full.jobs] == ["action-1"]
    assert [job.action.action_id for job in idle.jobs] == ["action-2", "action-3"]


@pytest.mark.parametrize("slots", [1, 2, 3, 8])
async def test_as_many_actions_run_at_once_as_there_are_slots(stage: RoleStage, slots: int) -> None:
    workers = HeldWorkers()
    async with stage.role(workers, replace(SPEC, slots=slots)):
        for number in range(3 * slots):
            await stage.send_work(action(number))
        await workers.started(slots)
        full = await stage.heartbeat(lambda body: len(body["running"]) == slots)
        at_once = len(workers.jobs)
        for number in range(3 * slots):
            (await workers.started(number + 1)).finish()
        await stage.handoff(3 * slots)

    assert at_once == slots
    assert full["slots"] == slots
    assert {job.slot for job in workers.jobs} == set(range(slots))
    assert sorted(job.action.action_id for job in workers.jobs) == sorted(
        f"action-{n}" for n in range(3 * slots)
    )


async def test_a_forged_grant_is_parked_with_its_reason_and_never_runs(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        await stage.send_work(action(1), key=SigningKey.generate())
        await stage.send_work(action(2))
        await workers.started(1)
        dead = await stage.parked()

    assert [job.action.action_id for job in workers.jobs] == ["action-2"]
    assert "not signed by this environment's supervisor" in str(dead.headers)


async def test_expired_work_is_answered_and_never_runs(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        await stage.send_work(action(1), start_by=clock.now_us() - 1)
        handoff = await stage.handoff()

    assert (handoff.outcome, handoff.action_id) == (Outcome.EXPIRED, "action-1")
    assert len(stage.said("action.accepted")) == 1  # only a holder's handoff is believed
    assert workers.jobs == []


async def test_an_input_that_breaks_its_contract_is_answered_and_never_runs(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        await stage.send_work(action(1, input={"txt": "typo"}))
        handoff = await stage.handoff()

    assert handoff.error is not None
    assert (handoff.outcome, handoff.error.code) == (Outcome.COULD_NOT_RUN, "input_refused")
    assert "'text'" in handoff.error.message
    assert workers.jobs == []


async def test_a_repeat_of_running_work_is_accepted_again_and_not_run_twice(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers, replace(SPEC, slots=2)):
        await stage.send_work(action())
        await workers.started(1)

        await stage.send_work(action())
        await stage.event("action.accepted", 2)
        workers.jobs[0].finish()
        await stage.handoff()

    assert len(workers.jobs) == 1
    assert len(stage.said("action.handoff")) == 1


async def test_a_repeat_of_finished_work_is_answered_with_its_handoff_and_not_run_twice(
    stage: RoleStage,
) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        await stage.send_work(action())
        (await workers.started(1)).finish()
        first = await stage.handoff(1)

        await stage.send_work(action())
        second = await stage.handoff(2)

    assert second == first
    assert len(workers.jobs) == 1
    assert len({one.message_id for one in stage.said("action.handoff")}) == 2


async def test_another_attempt_of_the_same_action_is_no_repeat(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        await stage.send_work(action(attempt=1))
        (await workers.started(1)).finish()
        await stage.send_work(action(attempt=2))
        (await workers.started(2)).finish()

        handoff = await stage.handoff(2)

    assert handoff.attempt == 2


# ---- orders ----------------------------------------------------------------------------------------------------


async def test_impure_work_waits_for_the_lease_that_names_it(stage: RoleStage) -> None:
    workers = HeldWorkers()
    one = action(of=IMPURE)
    async with stage.role(workers):
        await stage.send_work(one)
        await stage.event("action.accepted")
        await stage.order(
            "lease.granted",
            LeaseGranted(action_id=one.action_id, attempt=1, nonce="a-wrong-nonce-0123456789"),
        )
        await stage.order("lease.granted", LeaseGranted(action_id=one.action_id, attempt=2, nonce=one.nonce))
        await stage.order("announcement.wanted", AnnouncementWanted())
        await stage.event("role.announced", 2)  # so the two before were read too
        started_before = len(workers.jobs)

        await stage.order("lease.granted", LeaseGranted(action_id=one.action_id, attempt=1, nonce=one.nonce))
        await workers.started(1)

    assert started_before == 0


async def test_stopped_work_is_killed_and_handed_off_as_canceled(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        await stage.send_work(action())
        job = await workers.started(1)

        await stage.order(
            "action.stopped", ActionStopped(action_id="action-1", attempt=1, reason="the task was canceled")
        )
        handoff = await stage.handoff()

    assert job.killed
    assert handoff.error is not None
    assert (handoff.outcome, handoff.error.message) == (Outcome.CANCELED, "the task was canceled")


async def test_an_order_to_stop_something_else_changes_nothing(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        await stage.send_work(action())
        job = await workers.started(1)

        await stage.order("action.stopped", ActionStopped(action_id="action-1", attempt=2, reason="x"))
        await stage.order("announcement.wanted", AnnouncementWanted())
        await stage.event("role.announced", 2)

        assert not job.killed


async def test_an_order_of_anyone_but_the_supervisor_is_parked(stage: RoleStage) -> None:
    async with stage.role(HeldWorkers()) as process:
        await stage.order("role.drained", RoleDrained(reason="leave"), role="tester")
        dead = await stage.parked()

        assert not process.stop.is_draining
    assert "not from 'tester'" in str(dead.headers)


async def test_a_process_told_to_rest_takes_nothing_meanwhile(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        await stage.order("role.rested", RoleRested(seconds=3600, reason="it fails here"))
        resting = await stage.heartbeat(lambda body: body["state"] == "resting")
        await stage.send_work(action())
        for _ in range(3):
            await stage.heartbeat(lambda body: True)
        taken_while_resting = len(workers.jobs)
        await stage.order("role.rested", RoleRested(seconds=0, reason="enough"))
        await workers.started(1)

    assert taken_while_resting == 0
    assert resting["running"] == []


async def test_a_rest_ends_by_itself(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        await stage.order("role.rested", RoleRested(seconds=0.2, reason="a moment"))
        await stage.heartbeat(lambda body: body["state"] == "resting")
        await stage.heartbeat(lambda body: body["state"] == "ready")

        await stage.send_work(action())
        await workers.started(1)


async def test_a_later_order_to_rest_takes_over(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        await stage.order("role.rested", RoleRested(seconds=0.05, reason="a moment"))
        await stage.order("role.rested", RoleRested(seconds=3600, reason="for long"))
        await stage.order("announcement.wanted", AnnouncementWanted())
        await stage.event("role.announced", 2)  # so the two before were read too
        await stage.heartbeat(lambda body: body["state"] == "resting")
        states = [(await stage.heartbeat(lambda body: True))["state"] for _ in range(4)]
        await stage.order("role.rested", RoleRested(seconds=0, reason="enough"))
        await stage.heartbeat(lambda body: body["state"] == "ready")

        await stage.send_work(action())
        await workers.started(1)

    assert states == ["resting"] * 4


# ---- what goes wrong -------------------------------------------------------------------------------------------


async def test_a_lost_worker_fails_its_attempt_and_the_slot_works_on(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        await stage.send_work(action(1))
        (await workers.started(1)).fail(WorkerLostError("The child died of signal 9.", last_lines="Killed\n"))
        handoff = await stage.handoff(1)
        await stage.send_work(action(2))
        await workers.started(2)

    assert handoff.error is not None
    assert (handoff.outcome, handoff.error.code) == (Outcome.FAILED, "worker_lost")
    assert "Killed" in handoff.error.message


async def test_work_over_its_time_limit_is_killed_and_the_slot_works_on(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        await stage.send_work(action(1, time_limit_s=0.05))
        handoff = await stage.handoff(1)
        await stage.send_work(action(2))
        await workers.started(2)

    assert handoff.error is not None
    assert handoff.error.code == "time_limit"
    assert workers.jobs[0].killed


async def test_a_slot_whose_worker_does_not_die_is_not_used_again(stage: RoleStage) -> None:
    workers = HeldWorkers(deaf=True)
    async with stage.role(workers, replace(SPEC, slots=2), patience=Patience(kill_s=0.01)):
        await stage.send_work(action(1, time_limit_s=0.05))
        await stage.handoff(1)
        stuck = workers.jobs[0].slot
        for number in (2, 3):
            await stage.send_work(action(number))
            (await workers.started(number)).finish()
            await stage.handoff(number)

        assert [job.slot for job in workers.jobs[1:]] == [1 - stuck, 1 - stuck]
        workers.jobs[0].finish()


async def test_a_handoff_that_is_too_large_is_replaced_by_one_that_says_so(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers):
        await stage.send_work(action())
        (await workers.started(1)).finish(done(action(), open_questions=("x" * 2**21,)))
        handoff = await stage.handoff()

    assert handoff.error is not None
    assert (handoff.outcome, handoff.error.code) == (Outcome.FAILED, "handoff_refused")


async def test_what_happens_is_measured(stage: RoleStage) -> None:
    workers, metrics = HeldWorkers(), Metrics()
    async with stage.role(workers, metrics=metrics):
        await stage.send_work(action(1))
        (await workers.started(1)).finish()
        await stage.handoff()
        await stage.send_work(action(2), key=SigningKey.generate())
        await stage.parked()
        await stage.heartbeat(lambda body: not body["running"])

    read = metrics.registry.get_sample_value
    assert read("rolecall_attempts_total", {"contract": PURE.ref, "outcome": "no_change"}) == 1
    assert read("rolecall_attempt_seconds_count", {"contract": PURE.ref}) == 1
    assert read("rolecall_queue_wait_seconds_count", {"contract": PURE.ref}) == 1
    assert read("rolecall_dequeue_to_start_seconds_count", {"contract": PURE.ref}) == 1
    assert read("rolecall_publish_seconds_count", {"exchange": "events"}) == 3
    assert read("rolecall_dead_letters_total", {"reason": "not_granted"}) == 1
    assert read("rolecall_slots", {"pool": POOL}) == 1
    assert read("rolecall_slots_busy", {"pool": POOL}) == 0


# ---- leaving ---------------------------------------------------------------------------------------------------


async def test_a_drain_finishes_what_runs_takes_nothing_new_and_says_goodbye(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers) as process:
        await stage.send_work(action(1))
        job = await workers.started(1)
        await stage.order("role.drained", RoleDrained(reason="an upgrade"))
        await stage.heartbeat(lambda body: body["state"] == "draining")
        await stage.send_work(action(2))
        job.finish()
        await process.ended()
        goodbye = await stage.event("role.goodbye")

    assert goodbye.body == {"pool": POOL, "reason": "an upgrade", "running": []}
    assert [one.kind for one in stage.heard if one.kind != "role.heartbeat"][-2:] == [
        "action.handoff",
        "role.goodbye",
    ]
    assert len(workers.jobs) == 1


async def test_what_does_not_finish_in_time_is_killed_and_handed_back(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers, patience=Patience(drain_s=0.05)) as process:
        await stage.send_work(action(1))
        job = await workers.started(1)
        process.stop.drain("received SIGTERM")
        await process.ended()
        handoff = await stage.handoff()
        await stage.event("role.goodbye")

    assert job.killed
    assert handoff.error is not None
    assert (handoff.outcome, handoff.error.code) == (Outcome.COULD_NOT_RUN, "worker_left")


async def test_a_second_signal_kills_what_runs_and_returns(stage: RoleStage) -> None:
    workers = HeldWorkers()
    async with stage.role(workers) as process:
        await stage.send_work(action(1))
        job = await workers.started(1)
        process.stop.insist("received SIGTERM")
        await stage.heartbeat(lambda body: body["state"] == "draining")
        process.stop.insist("received SIGTERM")
        await process.ended()

    assert job.killed
    assert stage.said("action.handoff") == []


async def test_work_that_comes_while_a_process_stops_at_once_is_not_lost(stage: RoleStage) -> None:
    workers, other = HeldWorkers(), HeldWorkers()
    async with stage.role(workers, replace(SPEC, slots=4)) as process:
        await stage.send_work(action(1))
        await workers.started(1)
        process.stop.at_once("received SIGTERM")
        await process.ended()
        await stage.send_work(action(2))  # its consumer is there until the bus is closed
    async with stage.role(other, instance="host-8-8", settled=False):
        await other.started(1)

    assert [job.action.action_id for job in other.jobs] == ["action-2"]
    assert len(workers.jobs) == 1


async def test_work_that_a_leaving_process_did_not_take_stays_for_others(stage: RoleStage) -> None:
    async with stage.role(HeldWorkers()) as process:
        process.stop.drain("done here")
        await process.ended()
    await stage.send_work(action(1))

    other = HeldWorkers()
    async with stage.role(other, instance="host-8-8", settled=False):
        await other.started(1)

"""The trace of a task: every message and action of one id, from recorded stories."""

from pathlib import Path

import pytest

from schemas.errors import ContractError
from schemas.handoff import Handoff
from schemas.report import Trace, TraceAttempt
from schemas.words import Outcome, Verdict
from supervisor.journal.trace import trace
from supervisor.saga.commands import Dispatch
from supervisor.saga.messages import Cancel, LoseHolder
from supervisor.saga.state import ActionKind
from tests.unit.recorded import Recorded, reading, recording, told
from tests.unit.saga_world import changed, done, failed, refused, rule

W1, W2 = "worker-1", "worker-2"


def traced(folder: Path) -> Trace:
    with reading(folder) as reader:
        return trace(reader, "task-1")


def attempts_of(found: Trace, step: str) -> list[tuple[int, str, str, str]]:
    """(attempt, instance, outcome, reason) of a step's change."""
    (action,) = [one for one in found.actions if (one.step, one.kind) == (step, "change")]
    assert all(one.ended_at is not None for one in action.attempts), "an attempt is never told to have ended"
    return [(one.attempt, one.instance, one.outcome, one.reason) for one in action.attempts]


def stopped_at_the_change(world: Recorded) -> Dispatch:
    """The task up to the dispatch of its change, which is for the test to carry out."""
    world.submit()
    while True:
        if not world.outbox:
            world.fill()
        command = world.outbox.popleft()
        if isinstance(command, Dispatch) and command.spec.kind is ActionKind.CHANGE:
            return command
        world.obey(command)


def test_every_action_has_its_attempts_with_their_times(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), shard_count=1)
    world.change = lambda one: changed(one).model_copy(
        update={"started_at": world.at + 1, "ended_at": world.at + 5}
    )
    told(tmp_path, world)

    found = traced(tmp_path)

    assert [(one.step, one.kind, one.outcome) for one in found.actions] == [
        ("plan.r1", "plan", "done"),
        ("baseline", "baseline", "done"),
        ("one.s0", "change", "done"),
        ("one.s0", "review", "done"),
        (f"test.{world.state.head[:12]}", "test", "done"),
    ]
    change = found.actions[2]
    (attempt,) = change.attempts
    assert attempt == TraceAttempt(
        attempt=1,
        instance=W1,
        dispatched_at=change.opened_at,
        accepted_at=change.ended_at,
        started_at=(change.ended_at or 0) + 1,
        ended_at=(change.ended_at or 0) + 5,
        outcome="done",
    )
    assert [one.verdict for one in found.actions] == [None, Verdict.PASS, None, Verdict.PASS, Verdict.PASS]


def test_messages_are_told_in_order_with_who_and_whom(tmp_path: Path) -> None:
    told(tmp_path, Recorded((rule("one"),), shard_count=1))

    found = traced(tmp_path)

    kinds = [(one.direction, one.kind, one.receiver) for one in found.messages]
    assert kinds.count(("in", "task.submitted", "supervisor")) == 1
    assert {("out", "action.requested", "executor"), ("out", "effect.compose", "hub")} <= set(kinds)
    times = [one.sent_at or one.received_at or 0 for one in found.messages]
    assert all(times)
    work = next(one for one in found.messages if one.kind == "action.requested")
    assert (work.sender, work.attempt, work.action_id) == ("supervisor", 1, found.actions[0].action_id)
    assert {one.sender for one in found.messages if one.kind == "action.handoff"} == {f"executor {W1}"}


def test_a_retry_shows_the_failure_and_who_did_it_then(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), shard_count=1)
    with recording(tmp_path, world):
        first = stopped_at_the_change(world)
        world.accept(first, W1)
        world.hand_off(failed(first), W1)
        world.tick(2)
        world.run()

    assert attempts_of(traced(tmp_path), "one.s0") == [
        (1, W1, "failed", "crash: it crashed"),
        (2, W1, "done", ""),
    ]


def test_two_holders_are_two_lines_and_the_slower_one_was_stopped(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), shard_count=1)
    with recording(tmp_path, world):
        work = stopped_at_the_change(world)
        world.accept(work, W1)
        world.at += 1
        world.accept(work, W2)
        world.hand_off(changed(work), W2)
        world.run()

    found = traced(tmp_path)
    assert attempts_of(found, "one.s0") == [
        (1, W1, "canceled", "another holder finished first"),
        (1, W2, "done", ""),
    ]
    sent = {
        one.dispatched_at for action in found.actions for one in action.attempts if action.step == "one.s0"
    }
    assert None not in sent


def test_of_two_holders_one_fails_and_the_other_is_lost(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), shard_count=1)
    with recording(tmp_path, world):
        work = stopped_at_the_change(world)
        world.accept(work, W1)
        world.at += 1
        world.accept(work, W2)
        world.hand_off(failed(work), W1)
        world.tell(LoseHolder(world.at, work.spec.action_id, 1, W2, "its process was lost"))
        world.run()

    assert attempts_of(traced(tmp_path), "one.s0")[:2] == [
        (1, W1, "failed", "handed off: crash"),
        (1, W2, "lost", "lost: the worker was lost: its process was lost"),
    ]


def test_an_attempt_that_nobody_accepted_and_one_that_never_reported_have_ends(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), shard_count=1)
    with recording(tmp_path, world):
        stopped_at_the_change(world)
        world.tick(301)
        world.fill()
        second = world.outbox.popleft()
        assert isinstance(second, Dispatch)
        world.accept(second, W1)
        world.tick(500)
        world.outbox.clear()
        world.run()

    assert attempts_of(traced(tmp_path), "one.s0")[:2] == [
        (1, "", "not_accepted", "not_accepted: no worker accepted it in time"),
        (2, W1, "overdue", "overdue: its worker did not report in time"),
    ]


def test_what_ran_when_the_task_was_canceled_was_stopped(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), shard_count=1)
    with recording(tmp_path, world):
        work = stopped_at_the_change(world)
        world.accept(work, W1)
        world.tell(Cancel(world.at, "enough"))

    found = traced(tmp_path)

    assert attempts_of(found, "one.s0") == [(1, W1, "canceled", "canceled: enough")]
    assert all(one.ended_at for one in found.actions)
    assert str(found.status) == "canceled"


def test_a_narrowed_step_is_two_changes_under_one_name(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), shard_count=1)

    def strict(one: Dispatch) -> Handoff:
        excluded = [path for scope in one.spec.reach.scopes for path in scope.exclude]
        return done(one, verdict=Verdict.PASS) if "bad.py" in excluded else refused(one, "bad.py")

    world.review = strict
    told(tmp_path, world)

    found = traced(tmp_path)

    changes = [one.action_id for one in found.actions if (one.step, one.kind) == ("one.s0", "change")]
    assert len(set(changes)) == 2
    assert "one.s0 runs again without bad.py." in [one.text for one in found.moments]


def test_the_canary_and_the_landing_are_told_as_moments(tmp_path: Path) -> None:
    told(tmp_path, Recorded((rule("one"),)))

    words = [one.what for one in traced(tmp_path).moments]

    assert words == [
        "task_accepted", "plan_adopted", "baseline_known", "canary_tested", "plan_adopted", "rule_started",
        "rule_composed", "candidate_tested", "rule_landed", "task_ended",
    ]  # fmt: skip


def test_a_handoff_that_was_set_aside_is_told(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), shard_count=1)
    with recording(tmp_path, world):
        work = stopped_at_the_change(world)
        world.accept(work, W1)
        world.hand_off(changed(work), "a-stranger")
        world.hand_off(changed(work), W1)
        world.run()

    texts = [one.text for one in traced(tmp_path).moments if one.what == "handoff_set_aside"]
    assert texts == [
        f"A handoff of {work.spec.action_id} was set aside: it does not come from a recorded holder."
    ]


def test_an_unknown_task_is_an_error_that_says_where_to_look(tmp_path: Path) -> None:
    told(tmp_path, Recorded((rule("one"),)))

    with reading(tmp_path) as reader, pytest.raises(ContractError, match="`rolecall list` shows them"):
        trace(reader, "task-2")


def test_every_outcome_in_a_trace_is_a_known_word(tmp_path: Path) -> None:
    told(tmp_path, Recorded((rule("one"), rule("two"))))

    words = {one.outcome for action in traced(tmp_path).actions for one in action.attempts}

    assert words <= {str(outcome) for outcome in Outcome} | {"lost"}

"""Attempts that fail: back-off, loops, limits, silence, and what comes after the end."""

from dataclasses import replace

import pytest

from schemas.task import Limits
from schemas.words import Outcome, TaskStatus, Verdict
from supervisor.saga import events as ev
from supervisor.saga.attempts import DISPATCH_TTL_S, OUTAGE_GRACE_S, OVERDUE_GRACE_S
from supervisor.saga.commands import Dispatch
from supervisor.saga.messages import CannotSend
from supervisor.saga.moves import ActionStatus, RuleStatus, StepStatus
from supervisor.saga.specs import change_spec
from supervisor.saga.state import ActionKind, StepState
from tests.unit.saga_attempt import W1, W2, W3, at_the_change, live, lose, next_attempt, stops
from tests.unit.saga_world import BASE, SECOND, changed, done, failed, request, rule


def test_a_failure_is_tried_again_after_a_back_off_that_doubles_up_to_a_limit() -> None:
    limits = Limits(attempts_per_step=9)
    world, dispatch = at_the_change(request=request(limits=limits))
    waits = []
    for number in range(7):
        world.accept(dispatch, W1)
        world.hand_off(failed(dispatch, message=f"crash {number}"), W1)
        failure = world.names(ev.AttemptFailed)[-1]
        waits.append((failure.retry_at - failure.at) // SECOND)
        dispatch = next_attempt(world)

    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_nothing_is_dispatched_before_the_back_off_is_over() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)
    world.hand_off(failed(dispatch), W1)

    world.fill()
    world.tick(0.5)
    world.fill()
    early = [one for one in world.outbox if isinstance(one, Dispatch)]
    again = next_attempt(world)

    assert (early, again.attempt) == ([], 2)


def test_a_lost_worker_costs_no_back_off() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)

    lose(world, dispatch, W1)
    world.fill()

    assert [one.attempt for one in world.outbox if isinstance(one, Dispatch)] == [2]


def test_an_early_place_in_the_queue_does_not_shorten_a_back_off() -> None:
    world, first = at_the_change()
    world.accept(first, W1)
    lose(world, first, W1)  # in the queue again
    world.accept(first, W2)  # and taken after all
    world.hand_off(failed(first), W2)

    world.fill()

    assert [one for one in world.outbox if isinstance(one, Dispatch)] == []
    assert next_attempt(world).attempt == 2


def test_the_same_failure_twice_is_a_loop_and_the_step_is_given_up() -> None:
    world, first = at_the_change()
    world.accept(first, W1)
    world.hand_off(failed(first), W1)
    second = next_attempt(world)
    world.accept(second, W2)

    world.hand_off(failed(second), W2)

    assert world.state.rules[0].status is RuleStatus.UNLANDED
    assert world.state.rules[0].reason == "could not be done: crash: it crashed"


@pytest.mark.parametrize("code", ["TooSlowError", "OutOfReachError"])
def test_what_would_fail_the_same_way_is_not_tried_again(code: str) -> None:
    world, first = at_the_change()
    world.accept(first, W1)

    world.hand_off(failed(first, code, "took longer than 10 s on a.py"), W1)

    assert world.state.rules[0].status is RuleStatus.UNLANDED
    assert world.state.rules[0].reason == f"could not be done: {code}: took longer than 10 s on a.py"
    assert not world.names(ev.AttemptFailed)


@pytest.mark.parametrize(
    "code", ["worker_left", "stopped", "expired", "lease_not_granted", "contract_not_served"]
)
def test_what_says_something_about_a_worker_is_no_loop(code: str) -> None:
    world, dispatch = at_the_change()
    for _ in range(3):
        world.accept(dispatch, W1)
        world.hand_off(failed(dispatch, code, "as before"), W1)
        dispatch = next_attempt(world)

    assert dispatch.attempt == 4


def test_a_repeated_work_message_does_not_count_one_failure_twice() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)
    world.hand_off(failed(dispatch), W1)

    world.accept(dispatch, W1)  # the broker handed the work message to it once more,
    world.hand_off(failed(dispatch), W1)  # and it answers from memory

    assert len(world.names(ev.AttemptFailed)) == 1
    assert live(world, dispatch).status is ActionStatus.READY


def test_after_the_last_attempt_the_step_is_named_with_the_last_failure() -> None:
    world, dispatch = at_the_change(request=request(limits=Limits(attempts_per_step=2)))
    world.accept(dispatch, W1)
    world.hand_off(failed(dispatch, "crash", "first"), W1)
    dispatch = next_attempt(world)
    world.accept(dispatch, W1)

    world.hand_off(failed(dispatch, "crash", "second"), W1)

    assert world.state.status is TaskStatus.FAILED
    assert world.state.reason == "nothing landed: could not be done: crash: second"


def test_a_failure_of_one_of_two_holders_leaves_the_attempt_to_the_other() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)
    world.accept(dispatch, W2)

    world.hand_off(failed(dispatch), W1)
    between = live(world, dispatch)
    world.hand_off(changed(dispatch), W2)

    assert (between.status, between.holders, between.failures) == (
        ActionStatus.RUNNING,
        frozenset({(1, W2)}),
        (),
    )
    assert dispatch.spec.action_id not in world.state.actions


def test_a_handoff_that_the_commits_contradict_fails_the_attempt_with_the_reason() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)

    world.hand_off(changed(dispatch), W1, refusals=("it reports 2 changed files, the commits show 3",))

    failure = world.names(ev.AttemptFailed)[-1]
    assert (failure.code, failure.message) == ("refused", "it reports 2 changed files, the commits show 3")


def test_a_dispatch_that_nobody_accepts_is_sent_again_when_its_message_has_expired() -> None:
    world, dispatch = at_the_change()
    assert dispatch.start_by == world.at + DISPATCH_TTL_S * SECOND

    world.tick(DISPATCH_TTL_S - 1)
    waiting = live(world, dispatch).status
    world.tick(1)

    assert waiting is ActionStatus.DISPATCHED
    assert live(world, dispatch).failures == (("not_accepted", "no worker accepted it in time"),)
    world.fill()
    assert [one.attempt for one in world.outbox if isinstance(one, Dispatch)] == [2]


def test_a_worker_that_does_not_report_in_time_is_told_to_stop_and_its_attempt_is_overdue() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)

    world.tick(60 + OVERDUE_GRACE_S)

    assert live(world, dispatch).failures == (("overdue", "its worker did not report in time"),)
    assert stops(world) == [(W1, 1, "the attempt failed elsewhere")]


def test_nothing_runs_out_while_nobody_could_have_reported() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)

    world.tick(3_600, steady_since=None)
    in_the_outage = live(world, dispatch).status
    back_at = world.at
    world.tick(OUTAGE_GRACE_S - 1, steady_since=back_at)
    soon_after = live(world, dispatch).status
    world.tick(1, steady_since=back_at)
    later = live(world, dispatch).status

    assert (in_the_outage, soon_after, later) == (
        ActionStatus.RUNNING,
        ActionStatus.RUNNING,
        ActionStatus.READY,
    )


def test_work_that_fits_no_message_is_given_up_at_once() -> None:
    world, dispatch = at_the_change()

    world.tell(CannotSend(world.at, dispatch.spec.action_id, "it has 2000000 bytes"))

    assert world.state.rules[0].status is RuleStatus.UNLANDED
    assert world.state.rules[0].reason == "could not be done: cannot_be_sent: it has 2000000 bytes"


def test_who_accepts_work_of_an_action_that_is_over_is_told_to_stop() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)
    world.hand_off(changed(dispatch), W1)
    world.commands.clear()

    world.accept(dispatch, W2)
    unknown_pool = replace(dispatch, spec=dispatch.spec.model_copy(update={"pool": ""}))
    world.accept(unknown_pool, W3)

    assert stops(world) == [(W2, 1, "this action is over")]


def test_a_worker_that_was_told_to_stop_may_say_that_it_did() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)
    world.accept(dispatch, W2)
    world.hand_off(changed(dispatch), W1)
    before = len(world.events)

    world.hand_off(done(dispatch, outcome=Outcome.CANCELED), W2)

    assert world.events[before:] == []


def test_losing_somebody_who_holds_nothing_changes_nothing() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)
    before = world.state

    lose(world, dispatch, W2)

    assert world.state == before


def test_an_action_id_stays_the_same_over_attempts_and_differs_between_rounds() -> None:
    world, first = at_the_change()
    world.accept(first, W1)
    lose(world, first, W1)
    second = next_attempt(world)
    world.review = lambda one: done(one, verdict=Verdict.PASS)

    assert first.spec == second.spec
    assert first.nonce != second.nonce


def test_steps_of_two_rules_never_share_an_action_id_even_under_one_name() -> None:
    world, _ = at_the_change(rules=(rule("a"), rule("a.g2")))

    second_run_of_a = change_spec(world.state, StepState("a.g2.s0", 0, 0, BASE), ActionKind.CHANGE)
    first_run_of_a_g2 = change_spec(world.state, StepState("a.g2.s0", 1, 0, BASE), ActionKind.CHANGE)

    assert second_run_of_a.action_id != first_run_of_a_g2.action_id


def test_paths_whose_effect_nobody_granted_are_left_out_and_named() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)

    world.hand_off(
        changed(dispatch), W1, refusals=("no grant",), not_granted=(("setup.py", "is a build file"),)
    )

    step = world.state.steps[dispatch.spec.step]
    assert (step.status, step.excluded, step.rounds) == (StepStatus.CHANGING, ("setup.py",), 1)
    (again,) = world.state.actions.values()
    assert again.spec.reach.scopes[-1].exclude == ("setup.py",)
    assert world.names(ev.StepNarrowed)[-1].refusals[0].reason == "is a build file"

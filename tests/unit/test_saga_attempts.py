"""One action and its holders: who holds, whose handoff counts, who is told to stop."""

from dataclasses import replace

import pytest

from schemas.words import Outcome
from supervisor.saga import events as ev
from supervisor.saga.attempts import DISPATCH_TTL_S, OVERDUE_GRACE_S
from supervisor.saga.commands import GrantLease, StopAction
from supervisor.saga.moves import ActionStatus
from supervisor.saga.state import Proof
from tests.unit.saga_attempt import W1, W2, W3, at_the_change, live, lose, next_attempt, stops
from tests.unit.saga_world import SECOND, changed, rule


def test_who_accepts_is_a_holder_until_the_time_limit_and_some_grace() -> None:
    world, dispatch = at_the_change()

    world.accept(dispatch, W1)

    action = live(world, dispatch)
    assert (action.status, action.holders) == (ActionStatus.RUNNING, frozenset({(1, W1)}))
    assert action.due == world.at + (60 + OVERDUE_GRACE_S) * SECOND
    assert world.commands == []


def test_the_same_attempt_may_have_two_holders_and_is_lost_only_with_both() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)
    world.accept(dispatch, W2)

    lose(world, dispatch, W1)
    after_one = live(world, dispatch)
    lose(world, dispatch, W2)
    after_both = live(world, dispatch)

    assert (after_one.status, after_one.holders) == (ActionStatus.RUNNING, frozenset({(1, W2)}))
    assert (after_both.status, after_both.holders) == (ActionStatus.READY, frozenset())
    assert after_both.failures == (("lost", "the worker was lost: its process was lost"),)


def test_the_first_valid_handoff_of_a_pure_action_wins_and_the_other_holder_is_told_to_stop() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)
    world.accept(dispatch, W2)

    world.hand_off(changed(dispatch), W2)
    world.hand_off(changed(dispatch), W1)

    assert stops(world) == [(W1, 1, "another attempt finished first")]
    ended = [one for one in world.names(ev.ActionEnded) if one.action_id == dispatch.spec.action_id]
    assert [(one.outcome, one.instance) for one in ended] == [(Outcome.DONE, W2)]
    aside = world.names(ev.HandoffSetAside)[-1]
    assert (aside.instance, aside.reason) == (W1, "the action is over or was never opened")


def test_a_handoff_of_a_holder_that_was_given_up_still_wins() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)
    lose(world, dispatch, W1)

    world.hand_off(changed(dispatch), W1)

    assert dispatch.spec.action_id not in world.state.actions
    assert [one.step for one in world.names(ev.StepReturned)] == ["one.s0"]


def test_an_old_attempt_wins_over_the_one_that_was_dispatched_after_it() -> None:
    world, first = at_the_change()
    world.accept(first, W1)
    lose(world, first, W1)
    second = next_attempt(world)
    world.accept(second, W2)

    world.hand_off(changed(first), W1)

    ended = world.names(ev.ActionEnded)[-1]
    assert (ended.action_id, ended.attempt, ended.instance) == (first.spec.action_id, 1, W1)
    assert (W2, 2, "another attempt finished first") in stops(world)


def test_an_old_attempt_that_is_accepted_late_holds_beside_the_new_one() -> None:
    world, first = at_the_change()
    world.tick(DISPATCH_TTL_S + 1)
    second = next_attempt(world)

    world.accept(first, W1)
    world.accept(second, W2)

    assert live(world, first).holders == {(1, W1), (2, W2)}
    lose(world, second, W2)
    assert live(world, first).status is ActionStatus.RUNNING


def test_an_attempt_that_was_given_up_and_turns_up_before_the_next_one_runs_again() -> None:
    world, dispatch = at_the_change()
    world.tick(DISPATCH_TTL_S + 1)
    assert live(world, dispatch).status is ActionStatus.READY

    world.accept(dispatch, W1)
    world.fill()

    assert live(world, dispatch).status is ActionStatus.RUNNING
    assert world.state.inflight["executor"] == 1
    assert world.commands == []


def test_an_impure_action_runs_for_its_first_holder_only_under_its_lease() -> None:
    world, dispatch = at_the_change(rules=(rule("one", pure=False, proof=Proof.GATES),))

    world.accept(dispatch, W1)
    world.accept(dispatch, W2)

    spec = dispatch.spec
    assert world.commands == [
        GrantLease(spec.pool, W1, spec.action_id, 1, dispatch.nonce),
        StopAction(spec.pool, W2, spec.action_id, 1, "another instance holds the lease"),
    ]
    world.hand_off(changed(dispatch), W2)
    assert world.names(ev.HandoffSetAside)[-1].reason == "it does not come from a recorded holder"
    world.hand_off(changed(dispatch), W1)
    assert spec.action_id not in world.state.actions


def test_a_holder_that_accepts_again_is_granted_its_lease_again() -> None:
    world, dispatch = at_the_change(rules=(rule("one", pure=False, proof=Proof.GATES),))
    world.accept(dispatch, W1)
    once = world.state

    world.accept(dispatch, W1)

    granted = GrantLease(dispatch.spec.pool, W1, dispatch.spec.action_id, 1, dispatch.nonce)
    assert world.commands == [granted, granted]
    assert world.state == once


def test_an_impure_action_goes_to_another_instance_once_its_holder_is_lost() -> None:
    world, first = at_the_change(rules=(rule("one", pure=False, proof=Proof.GATES),))
    world.accept(first, W1)
    lose(world, first, W1)
    second = next_attempt(world)

    world.accept(second, W2)
    world.accept(first, W3)

    granted = [one.instance for one in world.commands if isinstance(one, GrantLease)]
    assert granted == [W1, W2]
    assert stops(world) == [(W3, 1, "another instance holds the lease")]


@pytest.mark.parametrize("nonce", ["", "f" * 32])
def test_a_wrong_nonce_neither_holds_nor_hands_off(nonce: str) -> None:
    world, dispatch = at_the_change()

    world.accept(dispatch, W2, nonce=nonce)
    world.accept(dispatch, W1)
    world.hand_off(changed(dispatch).model_copy(update={"nonce": nonce}), W1)

    assert live(world, dispatch).holders == {(1, W1)}
    assert world.names(ev.HandoffSetAside)[-1].reason == "the nonce is not this attempt's"
    assert world.commands == []


@pytest.mark.parametrize("attempt", [0, 2, 2**63])
def test_an_attempt_that_was_never_dispatched_is_not_known(attempt: int) -> None:
    world, dispatch = at_the_change()

    world.accept(replace(dispatch, attempt=attempt), W1)

    assert live(world, dispatch).holders == frozenset()


def test_a_handoff_of_somebody_who_never_held_it_is_set_aside() -> None:
    world, dispatch = at_the_change()
    world.accept(dispatch, W1)

    world.hand_off(changed(dispatch), "a-stranger")

    assert world.names(ev.HandoffSetAside)[-1].reason == "it does not come from a recorded holder"
    assert live(world, dispatch).holders == {(1, W1)}


def test_the_nonce_of_one_attempt_does_not_open_another() -> None:
    world, first = at_the_change()
    world.accept(first, W1)
    lose(world, first, W1)
    second = next_attempt(world)
    world.accept(second, W1)

    world.hand_off(changed(replace(second, nonce=first.nonce)), W1)

    assert world.names(ev.HandoffSetAside)[-1].reason == "the nonce is not this attempt's"

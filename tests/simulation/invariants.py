"""What must hold after every message of any schedule, and when a task is at rest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from schemas.words import Verdict
from supervisor.saga import events as ev
from supervisor.saga.commands import Dispatch, GrantLease
from supervisor.saga.decide import Decision
from supervisor.saga.messages import Message, Slots
from supervisor.saga.moves import ActionStatus, RuleStatus
from supervisor.saga.state import ActionKind, TaskState, needed

if TYPE_CHECKING:
    from tests.simulation.script import Site
    from tests.simulation.simulator import Simulator

_UNDER_WAY = (ActionStatus.DISPATCHED, ActionStatus.RUNNING)


def after(world: Simulator, before: TaskState, message: Message, decision: Decision) -> None:
    """Whatever was just decided."""
    _actions_are_counted(decision.state)
    _holders_fit(decision.state)
    _work_goes_to_free_slots(before, message, decision)
    _limits_are_kept(world, decision.state)
    _leases_are_exclusive(decision)
    _the_head_moves_to_tested_commits(world, decision)
    if before.status.is_final:
        told = {type(event).__name__ for event in decision.events}
        assert told <= {"BranchDelivered", "HandoffSetAside"}, f"after the end: {told}"


def at_rest(world: Simulator) -> None:
    """When everybody was well for long enough."""
    state = world.state
    assert state.status.is_final, f"it rests as {state.status}, {state.phase}"
    assert not state.actions, f"alive after the end: {sorted(state.actions)}"
    assert not any(state.inflight.values()), f"still counted: {dict(state.inflight)}"
    assert not state.ready, "something waits for a slot after the end"
    assert state.moving_to is None, "the head is still on its way"
    _every_rule_has_ended(world)
    _a_rule_lands_at_most_once(world)
    _the_head_holds_what_landed(world)


def _actions_are_counted(state: TaskState) -> None:
    under_way = Counter(one.spec.pool for one in state.actions.values() if one.status in _UNDER_WAY)
    counted = Counter({pool: number for pool, number in state.inflight.items() if number})
    assert under_way == counted, f"in flight are {under_way}, counted are {counted}"


def _holders_fit(state: TaskState) -> None:
    for action in state.actions.values():
        runs = action.status is ActionStatus.RUNNING
        assert runs == bool(action.holders), f"{action.spec.step} is {action.status} with {action.holders}"
        assert action.holders <= action.known_holders
        assert not action.holders & action.handed_off
        if action.status is ActionStatus.READY:
            waits = action.spec.action_id in state.ready.get(action.spec.pool, ())
            assert waits or action.spec.action_id in state.delayed, f"{action.spec.step} waits for nothing"


def _work_goes_to_free_slots(before: TaskState, message: Message, decision: Decision) -> None:
    sent = [command for command in decision.commands if isinstance(command, Dispatch)]
    offered = message.count if isinstance(message, Slots) else 0
    assert len(sent) <= offered, f"{len(sent)} dispatched into {offered} slots"
    early = [command.spec.step for command in sent if command.spec.action_id in before.delayed]
    assert not early, f"dispatched before their back-off is over: {early}"


def _limits_are_kept(world: Simulator, state: TaskState) -> None:
    for action in state.actions.values():
        assert action.attempt <= world.script.attempts
        assert len(action.failures) < world.script.attempts
    different = {dispatch.spec.action_id for dispatch in world.dispatched}
    assert len(different) <= world.script.most_actions, f"{len(different)} actions were dispatched"


def _leases_are_exclusive(decision: Decision) -> None:
    for command in decision.commands:
        if isinstance(command, GrantLease):
            holders = decision.state.actions[command.action_id].holders
            assert holders == {(command.attempt, command.instance)}, f"granted beside {holders}"


def _the_head_moves_to_tested_commits(world: Simulator, decision: Decision) -> None:
    for event in decision.events:
        if not isinstance(event, ev.HeadMoving):
            continue
        if needed(decision.state.baseline).verdict is not Verdict.PASS:
            assert world.script.allow_untested, "it lands untested without permission"
            continue
        passed = {
            one.commit
            for one in (*world.events, *decision.events)
            if isinstance(one, ev.CandidateTested) and one.verdict is Verdict.PASS
        }
        assert event.commit in passed, f"{event.commit} was not tested"


def _every_rule_has_ended(world: Simulator) -> None:
    for rule in world.state.rules:
        assert rule.is_final, f"{rule.request.rule} is {rule.status}"
        assert rule.status is RuleStatus.LANDED or rule.reason, f"{rule.request.rule} ended without a reason"


def _a_rule_lands_at_most_once(world: Simulator) -> None:
    landed = Counter(event.rule for event in world.events if isinstance(event, ev.RuleLanded))
    assert all(number == 1 for number in landed.values()), f"landed more than once: {landed}"


def _nothing_bad_is_in(world: Simulator, there: frozenset[Site]) -> None:
    """What no honest review or test lets pass did not get in by another way."""
    baseline = needed(world.state.baseline).verdict if world.state.baseline else None
    for owner, path in there:
        assert owner != "evil", "a forged result is in the head"
        rule = world.script.rule(owner)
        assert not rule.refused, f"{owner} was refused, and is in the head"
        assert rule.refused_path != path, f"{path} of {owner} was refused, and is in the head"
        assert not rule.red or baseline is not Verdict.PASS, f"{owner} fails its tests, and is in the head"


def _the_head_holds_what_landed(world: Simulator) -> None:
    """Every site of a rule is in the head, or is named: with its path, its step, or its rule."""
    state = world.state
    assert (world.head or state.head) == state.head, "the hub's head is not the task's"
    there = world.repository.commits[state.head]
    _nothing_bad_is_in(world, there)
    reaches = {
        event.spec.step: event.spec.reach
        for event in world.events
        if isinstance(event, ev.ActionOpened) and event.spec.kind is ActionKind.CHANGE
    }
    for rule in state.rules:
        name = rule.request.rule
        sites = {path for owner, path in there if owner == name}
        if rule.status is not RuleStatus.LANDED:
            assert not sites, f"{name} is {rule.status}, and in the head"
            continue
        left_out = {
            path
            for path in world.script.rule(name).touches
            for one in rule.refusals
            if one.path == path or (one.path is None and reaches[one.step].shard.holds(path))
        }
        wanted = set(world.script.rule(name).touches)
        assert sites == wanted - left_out, f"{name}: {wanted - left_out - sites} is neither there nor named"

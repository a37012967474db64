"""How events change rules, steps, candidates and the head."""

from collections.abc import Callable
from typing import Any

from immutables import Map

from supervisor.saga import events as ev
from supervisor.saga.moves import RULE_MOVES, STEP_MOVES, RuleStatus, StepStatus, moved
from supervisor.saga.state import (
    ActionKind,
    Canary,
    Candidate,
    RuleState,
    StepResult,
    StepState,
    TaskState,
)


def _rule_started(state: TaskState, event: ev.RuleStarted) -> TaskState:
    rule = state.rules[event.rule]
    status = moved(RULE_MOVES, rule.status, RuleStatus.RUNNING)
    fresh = _cleared(rule, status)._replace(generation=rule.generation + 1, base=event.base)
    return _put(state, event.rule, fresh)


def _step_opened(state: TaskState, event: ev.StepOpened) -> TaskState:
    known = state.steps.get(event.step)
    if known is not None:
        status = moved(STEP_MOVES, known.status, StepStatus.CHANGING)
        return state._replace(steps=state.steps.set(event.step, known._replace(status=status, results=Map())))
    step = StepState(event.step, event.rule, event.shard, event.base, canary=event.canary)
    opened = state._replace(steps=state.steps.set(event.step, step))
    if event.canary:
        canary = opened.canary or Canary(tip=state.head)
        return opened._replace(canary=canary._replace(rule=event.rule, step=event.step))
    rule = state.rules[event.rule]
    cursor = max(rule.cursor, event.shard + 1)
    return _put(opened, event.rule, rule._replace(cursor=cursor, open_steps=rule.open_steps + 1))


def _step_returned(state: TaskState, event: ev.StepReturned) -> TaskState:
    step = state.steps[event.step]
    step = step._replace(results=step.results.set(event.kind, event.result))
    return state._replace(steps=state.steps.set(event.step, step))


def _step_narrowed(state: TaskState, event: ev.StepNarrowed) -> TaskState:
    step = state.steps[event.step]
    paths = tuple(refusal.path for refusal in event.refusals if refusal.path is not None)
    narrowed = step._replace(excluded=(*step.excluded, *paths), rounds=step.rounds + 1)
    state = state._replace(steps=state.steps.set(event.step, narrowed))
    if step.canary:
        return state
    rule = state.rules[step.rule]
    return _put(state, step.rule, rule._replace(refusals=(*rule.refusals, *event.refusals)))


def _step_ended(state: TaskState, event: ev.StepEnded) -> TaskState:
    step = state.steps[event.step]
    moved(STEP_MOVES, step.status, event.status)
    result = event.from_memory or step.results.get(ActionKind.CHANGE)
    state = state._replace(steps=state.steps.delete(event.step))
    if event.remembered and result is not None:
        state = state._replace(remembered=state.remembered.set(event.remembered, result))
    if not step.canary:
        return _put(state, step.rule, _folded(state.rules[step.rule], step, event, result))
    canary = state.canary or Canary(tip=state.head)
    kept = event.status is StepStatus.KEPT and result is not None and result.result is not None
    tip = result.result if kept and result and result.result else canary.tip
    return state._replace(canary=canary._replace(step=None, tip=tip))


def _folded(rule: RuleState, step: StepState, event: ev.StepEnded, result: StepResult | None) -> RuleState:
    """The rule with the ended step's counts in it."""
    rule = rule._replace(
        open_steps=rule.open_steps - 1,
        ended_steps=rule.ended_steps + 1,
        refusals=(*rule.refusals, *event.refusals),
    )
    if result is not None:
        engines = {*rule.engines, *(f"{name} {version}" for name, version in result.engines.items())}
        rule = rule._replace(engines=tuple(sorted(engines)), residue=rule.residue + result.residue)
    if event.status is not StepStatus.KEPT or result is None or result.result is None:
        return rule
    return rule._replace(
        kept=rule.kept.set(step.shard, result.result),
        files=rule.files + result.files,
        added=rule.added + result.added,
        removed=rule.removed + result.removed,
        sites=rule.sites + result.sites,
    )


def _rule_gathered(state: TaskState, event: ev.RuleGathered) -> TaskState:
    return _moved(state, event.rule, RuleStatus.COMPOSING)


def _rule_composed(state: TaskState, event: ev.RuleComposed) -> TaskState:
    state = _moved(state, event.rule, RuleStatus.COMPOSED, commit=event.commit)
    return state._replace(chain=(*state.chain, Candidate(event.rule, event.commit, event.base)))


def _rule_unchanged(state: TaskState, event: ev.RuleUnchanged) -> TaskState:
    return _moved(state, event.rule, RuleStatus.UNCHANGED, reason=event.reason)


def _rule_unlanded(state: TaskState, event: ev.RuleUnlanded) -> TaskState:
    state = _moved(state, event.rule, RuleStatus.UNLANDED, reason=event.reason, commit=None)
    return _without(state, event.rule, event.rule + 1)


def _rules_reset(state: TaskState, event: ev.RulesReset) -> TaskState:
    rules = list(state.rules)
    for index in range(event.first, len(rules)):
        rule = rules[index]
        if rule.status not in (RuleStatus.UNLANDED, RuleStatus.LANDED):
            rules[index] = _cleared(rule, moved(RULE_MOVES, rule.status, RuleStatus.WAITING))
    return _without(state._replace(rules=tuple(rules)), event.first, len(rules))


def _candidate_tested(state: TaskState, event: ev.CandidateTested) -> TaskState:
    chain = tuple(
        candidate._replace(verdict=event.verdict, reason=event.reason)
        if candidate.commit == event.commit
        else candidate
        for candidate in state.chain
    )
    return state._replace(chain=chain)


def _head_moving(state: TaskState, event: ev.HeadMoving) -> TaskState:
    return state._replace(moving_to=event.commit)


def _head_moved(state: TaskState, event: ev.HeadMoved) -> TaskState:
    places = [index for index, candidate in enumerate(state.chain) if candidate.commit == event.commit]
    rest = state.chain[places[0] + 1 :] if places else state.chain
    return state._replace(head=event.commit, chain=rest, moving_to=None)


def _rule_landed(state: TaskState, event: ev.RuleLanded) -> TaskState:
    return _moved(state, event.rule, RuleStatus.LANDED, commit=event.commit)


def _cleared(rule: RuleState, status: RuleStatus) -> RuleState:
    """The rule as before it ran; what its canary told stays."""
    return RuleState(
        request=rule.request,
        planned=rule.planned,
        status=status,
        generation=rule.generation,
        canary_note=rule.canary_note,
    )


def _without(state: TaskState, first: int, stop: int) -> TaskState:
    """The state without the steps and candidates of rules first..stop-1; a candidate stands on the ones before it."""
    steps = state.steps
    for key, step in state.steps.items():
        if first <= step.rule < stop and not step.canary:
            steps = steps.delete(key)
    chain = tuple(candidate for candidate in state.chain if candidate.rule < first)
    return state._replace(steps=steps, chain=chain)


def _put(state: TaskState, index: int, rule: RuleState) -> TaskState:
    return state._replace(rules=(*state.rules[:index], rule, *state.rules[index + 1 :]))


def _moved(state: TaskState, index: int, status: RuleStatus, **changes: Any) -> TaskState:
    rule = state.rules[index]
    return _put(state, index, rule._replace(status=moved(RULE_MOVES, rule.status, status), **changes))


RULE_HANDLERS: dict[type[ev.Event], Callable[[TaskState, Any], TaskState]] = {
    ev.RuleStarted: _rule_started,
    ev.StepOpened: _step_opened,
    ev.StepReturned: _step_returned,
    ev.StepNarrowed: _step_narrowed,
    ev.StepEnded: _step_ended,
    ev.RuleGathered: _rule_gathered,
    ev.RuleComposed: _rule_composed,
    ev.RuleUnchanged: _rule_unchanged,
    ev.RuleUnlanded: _rule_unlanded,
    ev.RulesReset: _rules_reset,
    ev.CandidateTested: _candidate_tested,
    ev.HeadMoving: _head_moving,
    ev.HeadMoved: _head_moved,
    ev.RuleLanded: _rule_landed,
}

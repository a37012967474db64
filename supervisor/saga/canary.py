"""The canary: the first shard with sites of each rule that can be cut, on a throwaway chain, before the fan-out.

It does not land. What its review refuses is refused before the rule costs anything more; what its tests say goes to
the planner, which then lets nothing run ahead of a suspect rule. Its first result is remembered for the fan-out.
"""

from schemas.words import Verdict
from supervisor.saga import attempts, specs
from supervisor.saga import events as ev
from supervisor.saga.moves import Phase, RuleStatus, StepStatus
from supervisor.saga.state import StepState, TaskState, needed
from supervisor.saga.steps import open_step
from supervisor.saga.turn import Turn


def wants_canary(state: TaskState) -> bool:
    """True if there is anything to fan out: a plan whose rules are one shard each is its own canary."""
    return any(
        rule.planned is not None and rule.planned.canary is not None and rule.shards > 1
        for rule in state.rules
    )


def advance_canary(turn: Turn) -> bool:
    """The next thing to do on the throwaway chain; False while something is awaited."""
    state = turn.state
    canary = state.canary
    if canary is not None and canary.step is not None:
        return False
    if canary is not None and not canary.tested:
        refused = [one for one in state.known if one.outcome == StepStatus.UNLANDED]
        last = state.rules[canary.rule]
        if last.status is RuleStatus.WAITING and any(one.rule == last.request.rule for one in refused):
            reason = f"its canary was refused: {last.canary_note}"
            turn.happen(ev.RuleUnlanded(at=turn.at, rule=canary.rule, reason=reason))
            return True
    after = canary.rule if canary is not None else -1
    following = next(
        (index for index in range(after + 1, len(state.rules)) if _has_canary(state, index)), None
    )
    if following is not None and not (canary and canary.tested):
        _open(turn, following, canary.tip if canary else state.head)
        return True
    return _test(turn)


def _open(turn: Turn, index: int, tip: str) -> None:
    turn.happen(ev.CanaryMoved(at=turn.at, tip=tip, rule=index))
    rule = turn.state.rules[index]
    shard = needed(needed(rule.planned).canary)
    name = specs.step_name(rule, shard, canary=True)
    open_step(turn, StepState(name, index, shard, tip, canary=True))


def _test(turn: Turn) -> bool:
    state, canary = turn.state, needed(turn.state.canary)
    if canary.tested:
        known = tuple(one.model_copy(update={"tests": canary.verdict}) for one in state.known)
        revision = state.plan_asked + 1
        if revision <= state.asked.limits.plan_revisions:
            turn.happen(ev.PlanAsked(at=turn.at, revision=revision, known=known))
            attempts.open_action(turn, specs.plan_spec(turn.state, revision))
        turn.happen(ev.PhaseEntered(at=turn.at, phase=Phase.REVISING))
        return True
    if canary.tip == state.head:
        turn.happen(ev.CanaryTested(at=turn.at, verdict=None, reason="the canaries changed nothing"))
        return True
    if state.baseline is None:
        return False
    if state.baseline.verdict is not Verdict.PASS:
        turn.happen(ev.CanaryTested(at=turn.at, verdict=None, reason="there is no baseline to compare with"))
        return True
    spec = specs.canary_test_spec(state, canary.tip)
    if spec.action_id in state.actions:
        return False
    attempts.open_action(turn, spec)
    return True


def _has_canary(state: TaskState, index: int) -> bool:
    rule = state.rules[index]
    return rule.status is RuleStatus.WAITING and rule.planned is not None and rule.planned.canary is not None

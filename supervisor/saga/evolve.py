"""evolve(state, event): the next state. Total over recorded events, and the only place where state changes.

Tasks, plans and canaries here; actions in `evolve_actions`, rules and steps in `evolve_rules`.
"""

from collections.abc import Callable
from typing import Any

from immutables import Map

from schemas.words import TaskStatus
from supervisor.saga import events as ev
from supervisor.saga.evolve_actions import ACTION_HANDLERS
from supervisor.saga.evolve_rules import RULE_HANDLERS
from supervisor.saga.moves import PHASE_MOVES, TASK_MOVES, Phase, RuleStatus, moved
from supervisor.saga.state import Baseline, Canary, Ending, RuleState, TaskState


def evolve(state: TaskState, event: ev.Event) -> TaskState:
    """The state after `event`. Raises IllegalMoveError if the event may not follow."""
    return _HANDLERS[type(event)](state, event)


def _accepted(state: TaskState, event: ev.TaskAccepted) -> TaskState:
    return state._replace(
        status=moved(TASK_MOVES, state.status, TaskStatus.WORKING),
        request=event.request,
        rules=tuple(RuleState(request=rule) for rule in event.rules),
        plan_contract=event.plan_contract,
        review_contract=event.review_contract,
        test_contract=event.test_contract,
        secret=event.secret,
        head=event.request.base,
        accepted_at=event.at,
    )


def _rejected(state: TaskState, event: ev.TaskRejected) -> TaskState:
    status = moved(TASK_MOVES, state.status, TaskStatus.REJECTED)
    return state._replace(
        request=event.request,
        status=status,
        phase=Phase.DONE,
        reason=event.reason,
        accepted_at=event.at,
        ended_at=event.at,
    )


def _phase_entered(state: TaskState, event: ev.PhaseEntered) -> TaskState:
    return state._replace(phase=moved(PHASE_MOVES, state.phase, event.phase))


def _ending(state: TaskState, event: ev.TaskEnding) -> TaskState:
    return state._replace(ending=Ending(event.status, event.reason))


def _ended(state: TaskState, event: ev.TaskEnded) -> TaskState:
    return state._replace(
        status=moved(TASK_MOVES, state.status, event.status),
        phase=Phase.DONE,
        reason=event.reason,
        ended_at=event.at,
        ending=None,
        moving_to=None,
        waiting=Map(),
        ready=Map(),
        delayed=Map(),
    )


def _delivered(state: TaskState, event: ev.BranchDelivered) -> TaskState:
    return state._replace(delivered=event.branch)


def _pool_missed(state: TaskState, event: ev.PoolMissed) -> TaskState:
    return state._replace(waiting=state.waiting.set(event.pool, event.at))


def _pool_served(state: TaskState, event: ev.PoolServed) -> TaskState:
    return state._replace(waiting=state.waiting.delete(event.pool))


def _plan_asked(state: TaskState, event: ev.PlanAsked) -> TaskState:
    return state._replace(plan_asked=event.revision)


def _plan_adopted(state: TaskState, event: ev.PlanAdopted) -> TaskState:
    planned = {one.rule: one for one in event.plan.rules}
    rules = tuple(
        rule._replace(planned=planned.get(rule.request.rule, rule.planned))
        if rule.status is RuleStatus.WAITING
        else rule
        for rule in state.rules
    )
    return state._replace(plan=event.plan, rules=rules)


def _plan_failed(state: TaskState, event: ev.PlanFailed) -> TaskState:
    return state._replace(
        plan_failed=event.reason, plan_asked=state.plan.revision if state.plan else state.plan_asked
    )


def _baseline_known(state: TaskState, event: ev.BaselineKnown) -> TaskState:
    baseline = Baseline(
        event.verdict, event.results, event.passed, event.failed, event.duration_ms, event.reason
    )
    return state._replace(baseline=baseline)


def _canary_moved(state: TaskState, event: ev.CanaryMoved) -> TaskState:
    return state._replace(canary=Canary(tip=event.tip, rule=event.rule))


def _canary_noted(state: TaskState, event: ev.CanaryNoted) -> TaskState:
    rules = list(state.rules)
    rules[event.rule] = rules[event.rule]._replace(canary_note=event.known.reason)
    return state._replace(known=(*state.known, event.known), rules=tuple(rules))


def _canary_tested(state: TaskState, event: ev.CanaryTested) -> TaskState:
    canary = state.canary or Canary(tip=state.head)
    return state._replace(canary=canary._replace(step=None, verdict=event.verdict, tested=True))


_HANDLERS: dict[type[ev.Event], Callable[[TaskState, Any], TaskState]] = {
    ev.TaskAccepted: _accepted,
    ev.TaskRejected: _rejected,
    ev.PhaseEntered: _phase_entered,
    ev.TaskEnding: _ending,
    ev.TaskEnded: _ended,
    ev.BranchDelivered: _delivered,
    ev.PoolMissed: _pool_missed,
    ev.PoolServed: _pool_served,
    ev.PlanAsked: _plan_asked,
    ev.PlanAdopted: _plan_adopted,
    ev.PlanFailed: _plan_failed,
    ev.BaselineKnown: _baseline_known,
    ev.CanaryMoved: _canary_moved,
    ev.CanaryNoted: _canary_noted,
    ev.CanaryTested: _canary_tested,
    **ACTION_HANDLERS,
    **RULE_HANDLERS,
}

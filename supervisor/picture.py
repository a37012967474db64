"""The picture of a task: from the saga's state to what watchers and lists show."""

from schemas.task import RuleProgress, TaskProgress
from schemas.words import TaskStatus
from supervisor.saga.moves import ActionStatus, Phase, RuleStatus
from supervisor.saga.state import ActionKind, RuleState, TaskState


def picture(state: TaskState, at: int) -> TaskProgress:
    """The task at this moment (`at`: microseconds UTC)."""
    busy = [action for action in state.actions.values() if action.status is not ActionStatus.READY]
    return TaskProgress(
        task=state.task,
        status=state.status,
        phase=str(state.phase),
        sentence=sentence(state),
        rules=tuple(_rule(rule) for rule in state.rules),
        running=len(busy),
        waiting_for=tuple(sorted(state.waiting)),
        actions=state.spent_actions,
        baseline=state.baseline.verdict if state.baseline else None,
        head=state.head or None,
        at=at,
    )


def sentence(state: TaskState) -> str:
    """What is going on, in one sentence."""
    if state.status.is_final:
        return state.reason or str(state.status)
    if state.status is TaskStatus.SUBMITTED:
        return "waiting to be accepted"
    if state.ending is not None:
        return f"ending ({state.ending.reason}), once the head stands still"
    if state.waiting:
        pools = ", ".join(sorted(state.waiting))
        return f"waiting for a process that serves {pools}"
    kinds = {action.spec.kind for action in state.actions.values()}
    testing = ActionKind.TEST in kinds or ActionKind.CANARY_TEST in kinds
    match state.phase:
        case Phase.PLANNING:
            return (
                "planning, and testing the unchanged repository"
                if ActionKind.BASELINE in kinds
                else "planning"
            )
        case Phase.CANARY:
            return "testing the canary" if testing else "trying each rule on a first shard"
        case Phase.REVISING:
            return "revising the plan"
        case Phase.LANDING if state.baseline is None:
            return "testing the unchanged repository"
        case _:
            return _landing(state, testing=testing)


def _landing(state: TaskState, *, testing: bool) -> str:
    index = state.frontier
    parts: list[str] = []
    if index is not None:
        rule = state.rules[index]
        what = "composing" if rule.status is RuleStatus.COMPOSING else "changing"
        parts.append(f"{what} {rule.request.rule} ({rule.ended_steps} of {rule.shards} steps)")
    if testing:
        names = ", ".join(state.rules[one.rule].request.rule for one in state.chain if one.verdict is None)
        parts.append(f"testing {names}" if names else "testing")
    return " and ".join(parts) or "landing"


def _rule(rule: RuleState) -> RuleProgress:
    return RuleProgress(
        rule=rule.request.rule,
        contract=rule.request.contract.ref,
        status=str(rule.status),
        steps=rule.shards,
        changed=len(rule.kept),
        reviewed=rule.ended_steps,
        files=rule.files,
        commit=rule.commit,
        reason=rule.reason,
    )

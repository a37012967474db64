"""What the end of an action means: believed handoffs, refused ones, and giving up, by kind of action."""

from collections.abc import Callable

from schemas.handoff import Handoff
from schemas.words import Outcome, Severity, Verdict
from supervisor.saga import attempts, specs
from supervisor.saga import events as ev
from supervisor.saga.messages import HandOff
from supervisor.saga.moves import Phase, StepStatus
from supervisor.saga.state import (
    ActionKind,
    ActionState,
    Known,
    Proof,
    Refusal,
    StepResult,
    StepState,
    needed,
)
from supervisor.saga.steps import end_step, narrow
from supervisor.saga.turn import Turn

# A rule whose shards run out of time is cut smaller this often.
RECUTS_AT_MOST = 4
# What a pure action says of its rule and files, not of the worker: the next attempt would end the same.
_SURE = frozenset({"TooSlowError", "OutOfReachError"})
_FINISHED = frozenset({Outcome.DONE, Outcome.NO_CHANGE})


def take_handoff(turn: Turn, message: HandOff) -> None:
    """A handoff arrived: set it aside, let the attempt fail, or draw the consequences."""
    handoff = message.handoff
    action = turn.state.actions.get(handoff.action_id)
    if action is None and handoff.outcome is Outcome.CANCELED:
        return  # it was told to stop, and says that it did
    why_not = _set_aside_reason(turn, action, message)
    if action is None or why_not:
        turn.happen(
            ev.HandoffSetAside(
                at=turn.at,
                action_id=handoff.action_id,
                attempt=handoff.attempt,
                instance=message.instance,
                reason=why_not,
                is_late=action is None,
            )
        )
        return
    if message.refusals:
        if not _leave_out(turn, action, message):
            _fail(turn, action, message, "refused", "; ".join(message.refusals[:3]))
    elif handoff.outcome not in _FINISHED:
        error = handoff.error
        code = error.code if error else str(handoff.outcome)
        _fail(turn, action, message, code, error.message if error else "no reason given")
    else:
        _believed(turn, action, message)


def give_up(turn: Turn, action: ActionState, code: str, message: str, *, instance: str = "") -> None:
    """The action has had its last attempt; name what that leaves undone."""
    reason = f"{code}: {message}" if code else message
    outcome = Outcome.EXPIRED if code == "not_accepted" else Outcome.FAILED
    attempts.end_action(turn, action.spec.action_id, outcome, instance=instance, reason=reason)
    match action.spec.kind:
        case ActionKind.PLAN:
            turn.happen(ev.PlanFailed(at=turn.at, reason=message))
        case ActionKind.BASELINE:
            turn.happen(ev.BaselineKnown(at=turn.at, verdict=Verdict.COULD_NOT_RUN, reason=message))
        case ActionKind.CANARY_TEST:
            turn.happen(ev.CanaryTested(at=turn.at, verdict=Verdict.COULD_NOT_RUN, reason=message))
        case ActionKind.TEST:
            commit = action.spec.base
            turn.happen(
                ev.CandidateTested(at=turn.at, commit=commit, verdict=Verdict.COULD_NOT_RUN, reason=message)
            )
        case ActionKind.CHANGE | ActionKind.TWIN | ActionKind.REVIEW:
            step = turn.state.steps.get(action.spec.step)
            if step is not None:
                what = (
                    "could not be reviewed" if action.spec.kind is ActionKind.REVIEW else "could not be done"
                )
                end_step(
                    turn, step, StepStatus.UNLANDED, (Refusal(step=step.step, reason=f"{what}: {reason}"),)
                )


def _set_aside_reason(turn: Turn, action: ActionState | None, message: HandOff) -> str:
    handoff = message.handoff
    if action is None:
        return "the action is over or was never opened"
    if not attempts.knows(turn, action, handoff.attempt, handoff.nonce):
        return "the nonce is not this attempt's"
    if (handoff.attempt, message.instance) not in action.known_holders:
        return "it does not come from a recorded holder"
    return ""


def _fail(turn: Turn, action: ActionState, message: HandOff, code: str, text: str) -> None:
    """This holder failed. Others may still succeed; when none is left, the attempt has failed."""
    action_id, handoff = action.spec.action_id, message.handoff
    was_last = attempts.lose_holder(
        turn, action_id, handoff.attempt, message.instance, f"handed off: {code}", handed_off=True
    )
    if not was_last:
        return
    if code in _SURE:
        give_up(turn, action, code, text, instance=message.instance)
        return
    if code == "time_limit" and _cut_smaller(turn, action, text):
        return
    again = attempts.fail_attempt(
        turn, action_id, attempt=handoff.attempt, code=code, message=text, instance=message.instance
    )
    if not again:
        give_up(turn, turn.state.actions[action_id], code, text, instance=message.instance)


def _cut_smaller(turn: Turn, action: ActionState, text: str) -> bool:
    """A shard was too much work: start the rule again on smaller ones, if it can be cut and may be replanned."""
    state, spec = turn.state, action.spec
    step = state.steps.get(spec.step)
    if spec.kind is not ActionKind.CHANGE or step is None or step.canary or state.phase is not Phase.LANDING:
        return False
    rule = state.rules[step.rule]
    revision = state.plan_asked + 1
    limits = state.asked.limits
    may = rule.request.contract.file_shardable and rule.generation <= RECUTS_AT_MOST
    if not may or revision > limits.plan_revisions:
        return False
    for action_id, other in tuple(state.actions.items()):
        if other.spec.rule == step.rule:
            attempts.end_action(turn, action_id, Outcome.CANCELED, reason="the rule is cut smaller")
    known = Known(rule=rule.request.rule, outcome="time_limit", reason=text)
    turn.happen(ev.CanaryNoted(at=turn.at, rule=step.rule, known=known))
    turn.happen(ev.RulesReset(at=turn.at, first=step.rule, reason="a shard took too long"))
    turn.happen(ev.PlanAsked(at=turn.at, revision=revision, known=(known,)))
    attempts.open_action(turn, specs.plan_spec(turn.state, revision))
    turn.happen(ev.PhaseEntered(at=turn.at, phase=Phase.REVISING))
    return True


def _believed(turn: Turn, action: ActionState, message: HandOff) -> None:
    handoff, spec = message.handoff, action.spec
    attempts.end_action(
        turn,
        spec.action_id,
        handoff.outcome,
        attempt=handoff.attempt,
        instance=message.instance,
        message_id=message.message_id,
    )
    _CONSEQUENCES[spec.kind](turn, action, message)


def _planned(turn: Turn, action: ActionState, message: HandOff) -> None:
    plan = needed(message.plan)
    turn.happen(ev.PlanAdopted(at=turn.at, plan=plan))


def _baseline(turn: Turn, action: ActionState, message: HandOff) -> None:
    handoff = message.handoff
    turn.happen(
        ev.BaselineKnown(
            at=turn.at,
            verdict=handoff.verdict or Verdict.COULD_NOT_RUN,
            results=handoff.output.get("results"),
            passed=_count(handoff, "passed"),
            failed=_count(handoff, "failed"),
            duration_ms=_count(handoff, "duration_ms"),
            reason=_reason(handoff),
        )
    )


def _changed(turn: Turn, action: ActionState, message: HandOff) -> None:
    spec = action.spec
    step = turn.state.steps.get(spec.step)
    if step is None:
        return
    turn.happen(ev.StepReturned(at=turn.at, step=step.step, kind=spec.kind, result=_step_result(message)))
    step = turn.state.steps[spec.step]
    first, twin = step.results.get(ActionKind.CHANGE), step.results.get(ActionKind.TWIN)
    proof = turn.state.rules[step.rule].request.contract.proof
    if proof is Proof.NONE:
        end_step(turn, step, StepStatus.UNCHANGED)
    elif proof is Proof.TWICE and (first is None or twin is None):
        return
    elif first is not None and twin is not None and first.result != twin.result:
        reason = (
            f"two runs gave different results ({first.result} and {twin.result}): the contract is not pure"
        )
        end_step(turn, step, StepStatus.UNLANDED, (Refusal(step=step.step, reason=reason),))
    elif first is not None and first.result is None and proof is not Proof.RERUN:
        end_step(turn, step, StepStatus.UNCHANGED)  # nothing to judge: a second run agreed, or none can
    elif first is not None:
        attempts.open_action(turn, specs.review_spec(turn.state, step, first.result))


def _reviewed(turn: Turn, action: ActionState, message: HandOff) -> None:
    step = turn.state.steps.get(action.spec.step)
    if step is None:
        return
    turn.happen(
        ev.StepReturned(at=turn.at, step=step.step, kind=ActionKind.REVIEW, result=_step_result(message))
    )
    step = turn.state.steps[step.step]
    if message.handoff.verdict is Verdict.PASS:
        kept = needed(step.results.get(ActionKind.CHANGE)).result is not None
        end_step(turn, step, StepStatus.KEPT if kept else StepStatus.UNCHANGED)
        return
    refusals = _refusals(step, message.handoff)
    if not narrow(turn, step, refusals):
        end_step(turn, step, StepStatus.UNLANDED, refusals)


def _leave_out(turn: Turn, action: ActionState, message: HandOff) -> bool:
    """A change whose only fault is an effect that nobody granted runs again without those paths, if it can be cut."""
    spec = action.spec
    step = turn.state.steps.get(spec.step)
    if step is None or spec.kind not in (ActionKind.CHANGE, ActionKind.TWIN) or not message.not_granted:
        return False
    refusals = tuple(
        Refusal(step=step.step, path=path, reason=reason) for path, reason in message.not_granted
    )
    return narrow(turn, step, refusals)


def _tested(turn: Turn, action: ActionState, message: HandOff) -> None:
    handoff = message.handoff
    turn.happen(
        ev.CandidateTested(
            at=turn.at,
            commit=action.spec.base,
            verdict=handoff.verdict or Verdict.COULD_NOT_RUN,
            reason=_reason(handoff),
            passed=_count(handoff, "passed"),
            failed=_count(handoff, "failed"),
            message_id=message.message_id,
        )
    )


def _canary_tested(turn: Turn, action: ActionState, message: HandOff) -> None:
    handoff = message.handoff
    turn.happen(ev.CanaryTested(at=turn.at, verdict=handoff.verdict, reason=_reason(handoff)))


_CONSEQUENCES: dict[ActionKind, Callable[[Turn, ActionState, HandOff], None]] = {
    ActionKind.PLAN: _planned,
    ActionKind.BASELINE: _baseline,
    ActionKind.CHANGE: _changed,
    ActionKind.TWIN: _changed,
    ActionKind.REVIEW: _reviewed,
    ActionKind.TEST: _tested,
    ActionKind.CANARY_TEST: _canary_tested,
}


def _step_result(message: HandOff) -> StepResult:
    handoff = message.handoff
    residue = handoff.spilled["residue"].count if "residue" in handoff.spilled else len(handoff.residue)
    return StepResult(
        outcome=handoff.outcome,
        result=handoff.result,
        files=message.files,
        added=message.added,
        removed=message.removed,
        sites=_count(handoff, "sites"),
        residue=residue,
        files_seen=_count(handoff, "files_seen"),
        wall_ms=handoff.cost.wall_ms,
        instance=message.instance,
        engines=handoff.engines,
        message_id=message.message_id,
    )


def _refusals(step: StepState, handoff: Handoff) -> tuple[Refusal, ...]:
    errors = [one for one in handoff.findings if one.severity is Severity.ERROR]
    named = tuple(
        Refusal(step=step.step, path=one.path, reason=f"review, {one.gate}: {one.text}") for one in errors
    )
    return named or (Refusal(step=step.step, reason=f"review: {handoff.verdict} without a finding"),)


def _count(handoff: Handoff, name: str) -> int:
    value = handoff.output.get(name, 0)
    return value if isinstance(value, int) else 0


def _reason(handoff: Handoff) -> str:
    for finding in handoff.findings:
        return finding.text
    return handoff.error.message if handoff.error else ""

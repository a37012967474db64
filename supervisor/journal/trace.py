"""The trace of a task: every message and action of one correlation_id, over all processes."""

from dataclasses import dataclass, field

from bus.codec import body_of, decode
from schemas.errors import ContractError
from schemas.handoff import Handoff
from schemas.messages import ActionHandoff
from schemas.report import Moment, Trace, TraceAction, TraceAttempt, TraceMessage
from schemas.words import Verdict
from supervisor.journal.reader import JournalReader, Letter
from supervisor.saga import events as ev
from supervisor.saga.evolve import evolve
from supervisor.saga.state import ActionSpec, TaskState
from supervisor.telling import tell


@dataclass(slots=True)
class _Line:
    """One action as it is being told."""

    spec: ActionSpec
    opened_at: int
    ended_at: int | None = None
    outcome: str = ""
    verdict: Verdict | None = None
    attempts: dict[tuple[int, str], TraceAttempt] = field(default_factory=dict)


def trace(reader: JournalReader, task: str) -> Trace:
    """Everything that one correlation_id caused. Raises ContractError if there is no such task."""
    letters = reader.letters(task)
    handoffs = {one.message_id: found for one in letters if (found := _handoff(one)) is not None}
    state, seen = TaskState(task), False
    lines: dict[str, _Line] = {}
    moments: list[Moment] = []
    for recorded in reader.events(task):
        seen = True
        state = evolve(state, recorded.event)
        _follow(lines, recorded.event, handoffs.get(recorded.message_id or ""))
        told = tell(state, recorded.event)
        if told is not None:
            moments.append(Moment(at=recorded.event.at, what=told.action, text=told.text))
    if not seen:
        raise ContractError(f"There is no task {task!r}.", suggestion="`rolecall list` shows them.")
    return Trace(
        task=task,
        status=state.status,
        accepted_at=state.accepted_at,
        ended_at=state.ended_at or None,
        actions=tuple(_action(line) for line in lines.values()),
        messages=tuple(_message(letter, handoffs.get(letter.message_id)) for letter in letters),
        moments=tuple(moments),
    )


def _follow(lines: dict[str, _Line], event: ev.Event, handoff: Handoff | None) -> None:
    match event:
        case ev.ActionOpened(spec=spec, at=at):
            lines[spec.action_id] = _Line(spec, at)
        case ev.ActionDispatched(action_id=action_id, attempt=attempt, at=at):
            lines[action_id].attempts[attempt, ""] = TraceAttempt(attempt=attempt, dispatched_at=at)
        case ev.ActionHeld(action_id=action_id, attempt=attempt, instance=instance, at=at):
            attempts = lines[action_id].attempts
            sent = attempts.pop((attempt, ""), None) or _sent(attempts, attempt)
            attempts[attempt, instance] = sent.model_copy(update={"instance": instance, "accepted_at": at})
        case ev.LeaseEnded(action_id=action_id, attempt=attempt, instance=instance, reason=reason, at=at):
            outcome = "failed" if event.handed_off else "lost"
            _end(lines[action_id], attempt, instance, at=at, outcome=outcome, reason=reason, handoff=handoff)
        case ev.AttemptFailed(action_id=action_id, attempt=attempt, at=at):
            reason = f"{event.code}: {event.message}"
            line = lines[action_id]
            outcome = event.code if event.code in _LOST else "failed"
            _end(line, attempt, event.instance, at=at, outcome=outcome, reason=reason, handoff=handoff)
            _end_others(line, at, outcome, reason)
        case ev.ActionEnded(action_id=action_id, attempt=attempt, at=at):
            line = lines[action_id]
            line.ended_at, line.outcome = at, str(event.outcome)
            line.verdict = handoff.verdict if handoff is not None else None
            outcome, reason = str(event.outcome), event.reason
            _end(line, attempt, event.instance, at=at, outcome=outcome, reason=reason, handoff=handoff)
            _end_others(line, at, "canceled", reason or "another holder finished first")
        case _:
            pass


# Ways in which an attempt ends without a word from its worker.
_LOST = frozenset({"lost", "not_accepted", "overdue"})


def _sent(attempts: dict[tuple[int, str], TraceAttempt], attempt: int) -> TraceAttempt:
    """The dispatch of an attempt that a second holder accepted too."""
    other = next((one for (number, _), one in attempts.items() if number == attempt), None)
    return TraceAttempt(attempt=attempt, dispatched_at=other.dispatched_at if other else None)


def _end(
    line: _Line, attempt: int, instance: str, *, at: int, outcome: str, reason: str, handoff: Handoff | None
) -> None:
    key = (attempt, instance) if (attempt, instance) in line.attempts else (attempt, "")
    known = line.attempts.get(key)
    if known is None:
        return
    told = handoff if handoff is not None and handoff.action_id == line.spec.action_id else None
    line.attempts[key] = known.model_copy(
        update={
            "started_at": told.started_at or None if told else known.started_at,
            "ended_at": told.ended_at or at if told else at,
            "outcome": outcome,
            "reason": reason,
        }
    )


def _end_others(line: _Line, at: int, outcome: str, reason: str) -> None:
    """What still runs, or waits in a queue, is over with it."""
    for key, known in line.attempts.items():
        if known.ended_at is None:
            line.attempts[key] = known.model_copy(
                update={"ended_at": at, "outcome": outcome, "reason": reason}
            )


def _action(line: _Line) -> TraceAction:
    spec = line.spec
    return TraceAction(
        action_id=spec.action_id,
        kind=str(spec.kind),
        step=spec.step,
        contract=spec.contract,
        pool=spec.pool,
        opened_at=line.opened_at,
        ended_at=line.ended_at,
        outcome=line.outcome,
        verdict=line.verdict,
        attempts=tuple(sorted(line.attempts.values(), key=lambda one: (one.attempt, one.accepted_at or 0))),
    )


def _message(letter: Letter, handoff: Handoff | None) -> TraceMessage:
    body = _peek(letter)
    return TraceMessage(
        message_id=letter.message_id,
        causation_id=letter.causation_id or body.get("causation"),
        direction=letter.direction,
        kind=letter.kind,
        sender=letter.sender,
        receiver=letter.key if letter.direction == "out" else "supervisor",
        sent_at=letter.created_at if letter.direction == "in" else letter.sent_at,
        received_at=letter.received_at,
        action_id=handoff.action_id if handoff else body.get("action_id"),
        attempt=body.get("attempt", 0),
        note=letter.note,
    )


def _peek(letter: Letter) -> dict[str, object]:
    """What an envelope tells beside its row; effects are not envelopes."""
    if letter.kind.startswith("effect."):
        return {}
    try:
        envelope = decode(letter.raw)
    except ContractError:
        return {}
    return {
        "causation": envelope.causation_id,
        "action_id": envelope.body.get("action_id"),
        "attempt": envelope.attempt or envelope.body.get("attempt") or 0,
    }


def _handoff(letter: Letter) -> Handoff | None:
    if letter.kind != "action.handoff":
        return None
    try:
        body = body_of(decode(letter.raw))
    except ContractError:
        return None
    return body.handoff if isinstance(body, ActionHandoff) else None

"""From decided events to the rows of one transaction: the record itself, and the pictures that readers use."""

from schemas.lossless import dump_json
from schemas.words import TaskStatus
from supervisor.journal.journal import Group, LeaseKey, Row
from supervisor.leases import Lease, Leases
from supervisor.picture import picture
from supervisor.saga import events as ev
from supervisor.saga.events import write_event
from supervisor.saga.state import TaskState


def record(
    group: Group,
    leases: Leases,
    state: TaskState,
    events: tuple[ev.Event, ...],
    *,
    message_id: str | None,
    sent_at: int,
) -> None:
    """Add what one decision led to. `sent_at` is the causing message's time on its sender's clock."""
    for event in events:
        name, data = write_event(event)
        group.events.append(
            {"task": state.task, "at": event.at, "name": name, "data": data, "message_id": message_id}
        )
        match event:
            case ev.ActionHeld():
                lease = Lease(state.task, event.action_id, event.attempt, event.instance, accepted_at=sent_at)
                leases.add(lease)
                group.leases[_key(lease)] = _lease_row(lease, event.at)
            case ev.LeaseEnded():
                _end(group, leases.release(event.action_id, event.attempt, event.instance))
            case ev.AttemptFailed() | ev.ActionEnded():
                _end(group, leases.release(event.action_id))
            case ev.StepEnded():
                group.steps.append(_step_row(state, event))
            case _:
                pass


def task_row(state: TaskState, at: int) -> Row | None:
    """The task as lists show it; None before it was accepted or rejected."""
    request = state.request
    if state.status is TaskStatus.SUBMITTED:
        return None
    return {
        "task": state.task,
        "status": str(state.status),
        "recipe": request.recipe_name if request else "?",
        "repository": request.repository if request else "?",
        "submitted_by": request.submitted_by if request else "",
        "accepted_at": state.accepted_at,
        "updated_at": at,
        "ended_at": state.ended_at or None,
        "reason": state.reason,
        "progress": dump_json(picture(state, at)),
    }


def _end(group: Group, ended: list[Lease]) -> None:
    for lease in ended:
        group.leases[_key(lease)] = None


def _key(lease: Lease) -> LeaseKey:
    return lease.action_id, lease.attempt, lease.instance


def _lease_row(lease: Lease, at: int) -> Row:
    return {
        "action_id": lease.action_id,
        "attempt": lease.attempt,
        "instance": lease.instance,
        "task": lease.task,
        "since": at,
    }


def _step_row(state: TaskState, event: ev.StepEnded) -> Row:
    _, data = write_event(event)
    return {
        "task": state.task,
        "step": event.step,
        "status": str(event.status),
        "ended_at": event.at,
        "data": data,
    }

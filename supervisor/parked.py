"""Parked messages as rows: who set them aside and why, with their raw bytes."""

from bus.api import Delivery
from bus.parking import why_dead
from schemas.clock import new_id
from supervisor.journal.journal import Row


def dead_row(delivery: Delivery, at: int, *, environment: str, reason: str | None = None) -> Row:
    """The row of a dead letter that arrived, or of a message that the supervisor itself parks for `reason`."""
    why = why_dead(delivery.headers, environment)
    envelope = delivery.envelope
    return {
        "id": new_id(),
        "task": envelope.correlation_id if envelope else "",
        "kind": envelope.kind if envelope else "",
        "reason": reason or (why.reason if why else "") or delivery.fault or "no reason is known",
        "queue": why.queue if why and reason is None else delivery.queue,
        "received_at": at,
        "raw": delivery.raw,
    }

"""Why a message was set aside: written into headers where we park it, read back from ours or the broker's.

The bytes of a parked message stay as they came. Its old headers do not: RabbitMQ 3.x believes an `x-death` that a
client sends, and then loses or wedges the message.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bus.api import Delivery
from schemas.clock import now_us

# All headers together stay under 2 KiB: large headers kill the connection, and names and keys take up to 1 KiB.
MAX_REASON_BYTES = 1_000

_REASON = "rolecall-reason"
_QUEUE = "rolecall-queue"
_EXCHANGE = "rolecall-exchange"
_KEY = "rolecall-key"
_BY = "rolecall-parked-by"
_AT = "rolecall-parked-at"

_BROKER_REASONS = {
    "expired": "It expired before anybody took it.",
    "delivery_limit": "It was handed out too often without being settled.",
    "rejected": "A consumer rejected it.",
    "maxlen": "The queue was full.",
}


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Where a dead letter came from and why. `exchange` has no environment prefix. `by` is the instance that parked it, or `broker`; `at` microseconds UTC."""

    reason: str
    queue: str
    exchange: str
    key: str
    by: str
    at: int


def parking_headers(delivery: Delivery, reason: str, by: str) -> dict[str, Any]:
    """The headers of a message that is parked."""
    short = reason.encode("utf-8", "replace")[:MAX_REASON_BYTES].decode("utf-8", "ignore")
    return {
        _REASON: short,
        _QUEUE: delivery.queue[:255],
        _EXCHANGE: delivery.exchange[:255],
        _KEY: delivery.key[:255],
        _BY: by[:200],
        _AT: now_us(),
    }


def parking_key(delivery: Delivery, environment: str) -> str:
    """The routing key on the dead exchange: the queue it came from, without the environment."""
    return delivery.queue.removeprefix(f"{environment}.")[:255]


def why_dead(headers: Mapping[str, Any], environment: str) -> DeadLetter | None:
    """What the headers of a dead letter tell; None if they tell nothing."""
    if _REASON in headers:
        return DeadLetter(
            reason=str(headers[_REASON]),
            queue=str(headers.get(_QUEUE, "")),
            exchange=str(headers.get(_EXCHANGE, "")),
            key=str(headers.get(_KEY, "")),
            by=str(headers.get(_BY, "")),
            at=int(headers.get(_AT, 0)),
        )
    deaths = headers.get("x-death")
    if not isinstance(deaths, list) or not deaths or not isinstance(deaths[0], Mapping):
        return None
    death = deaths[0]
    keys = death.get("routing-keys") or [""]
    time = death.get("time")
    reason = str(death.get("reason", ""))
    return DeadLetter(
        reason=_BROKER_REASONS.get(reason, reason),
        queue=str(death.get("queue", "")),
        exchange=str(death.get("exchange", "")).removeprefix(f"{environment}."),
        key=str(keys[0]),
        by="broker",
        at=int(time.timestamp() * 1_000_000) if isinstance(time, datetime) else 0,
    )

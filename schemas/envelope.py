"""The envelope: what every message on the bus is wrapped in.

The envelope's `message_id` is the one that counts for repeats; the AMQP property of that name is unique per
publish attempt and only serves the broker.
"""

from typing import Any

from pydantic import Field

from schemas.base import Tolerant
from schemas.words import Lane

ENVELOPE_VERSION = 1
# Bodies over this are refused before the wire: RabbitMQ 4 refuses at 16 MiB, and a queue of large bodies starves it.
MAX_ENVELOPE_BYTES = 1024 * 1024
# What grows past this travels as a blob in the hub, and the envelope carries its id.
MAX_INLINE_BYTES = 64 * 1024


class Sender(Tolerant):
    """Who published: a role word, the running process (`host-pid-start`), and its version."""

    role: str = Field(min_length=1, max_length=64)
    instance: str = Field(min_length=1, max_length=200)
    version: str = Field(max_length=64)


class Envelope(Tolerant):
    """One message. `created_at` is integer microseconds UTC; `ttl_ms` is set on work, heartbeat and feed only."""

    v: int = Field(default=ENVELOPE_VERSION, ge=1)
    environment: str = Field(min_length=1, max_length=100)
    message_id: str = Field(min_length=8, max_length=64)
    correlation_id: str = Field(min_length=1, max_length=64)
    causation_id: str | None = Field(default=None, max_length=64)
    kind: str = Field(min_length=3, max_length=64, pattern=r"^[a-z_]+\.[a-z_]+$")
    sender: Sender
    created_at: int = Field(ge=0)
    ttl_ms: int | None = Field(default=None, ge=0)
    attempt: int = Field(default=0, ge=0)
    lane: Lane = Lane.INTERACTIVE
    traceparent: str | None = Field(default=None, max_length=64)
    body: dict[str, Any]

    def is_expired(self, now_us: int) -> bool:
        """True once the time to live has passed at `now_us` (microseconds UTC)."""
        return self.ttl_ms is not None and now_us > self.created_at + self.ttl_ms * 1_000

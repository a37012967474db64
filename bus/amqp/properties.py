"""Envelopes mirrored into AMQP properties, for people with broker tools and for what the broker itself does.

Nothing of ours reads these back but the broker's word on who published (`user_id`) and the headers of dead letters.
The AMQP message_id is new for each attempt to publish: the library tells returned messages apart by it, and with one
id twice under way it reports the wrong one. The envelope's own id is in the header `message-id`.
"""

import secrets
from datetime import UTC, datetime
from itertools import count
from typing import Any

from pamqp.commands import Basic

from schemas.envelope import Envelope

CONTENT_TYPE = "application/msgpack"
_PERSISTENT = 2
_TRANSIENT = 1


class PropertyMaker:
    """Makes the properties of one process's publishes; `user` is what the broker knows us as."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(8)
        self._numbers = count(1)

    def of_envelope(self, envelope: Envelope, *, user: str, is_persistent: bool) -> Basic.Properties:
        """The properties of one attempt to publish an envelope."""
        headers: dict[str, Any] = {"message-id": envelope.message_id}
        if envelope.causation_id is not None:
            headers["causation-id"] = envelope.causation_id
        if envelope.attempt:
            headers["attempt"] = envelope.attempt
        if envelope.traceparent is not None:
            headers["traceparent"] = envelope.traceparent
        return Basic.Properties(
            content_type=CONTENT_TYPE,
            headers=headers,
            delivery_mode=_PERSISTENT if is_persistent else _TRANSIENT,
            correlation_id=envelope.correlation_id,
            expiration=None if envelope.ttl_ms is None else str(envelope.ttl_ms),
            message_id=self._next_id(),
            timestamp=datetime.fromtimestamp(envelope.created_at // 1_000_000, UTC),
            message_type=envelope.kind,
            user_id=user,
            app_id=f"{envelope.sender.role}/{envelope.sender.instance}"[:255],
        )

    def of_raw(self, headers: dict[str, Any], *, user: str) -> Basic.Properties:
        """The properties of bytes that are parked: only the headers given, none that the message had before."""
        return Basic.Properties(
            content_type=CONTENT_TYPE,
            headers=headers,
            delivery_mode=_PERSISTENT,
            message_id=self._next_id(),
            user_id=user,
        )

    def _next_id(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"

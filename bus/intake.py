"""What arrived, read without trust: bytes in, a Delivery out that says what is wrong with it, if anything."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from bus import codec
from bus.api import Delivery
from schemas.clock import now_us
from schemas.envelope import Envelope
from schemas.errors import ContractError

# What RabbitMQ 4 lets through at most; more was never a message.
LARGEST_READ_BYTES = 16 * 1024 * 1024


class Intake:
    """Reads deliveries of one environment.

    `roles_of_users` maps broker users to the role each may speak for; where it is given, the broker's word
    (`user_id`, which it checks at publish) has to fit the envelope's sender.
    """

    def __init__(self, environment: str, roles_of_users: Mapping[str, str] | None = None) -> None:
        self._environment = environment
        self._roles_of_users = roles_of_users

    def read(
        self,
        raw: bytes,
        *,
        queue: str,
        exchange: str,
        key: str,
        redelivered: bool,
        headers: Mapping[str, Any],
        handle: object,
        user: str | None = None,
    ) -> Delivery:
        """The delivery of these bytes; `fault` is set where it cannot be used."""
        envelope, body, fault = self._judge(raw, user)
        return Delivery(
            envelope=envelope,
            body=body,
            raw=raw,
            fault=fault,
            queue=queue,
            exchange=exchange.removeprefix(f"{self._environment}."),
            key=key,
            redelivered=redelivered,
            received_at=now_us(),
            headers=dict(headers),
            handle=handle,
        )

    def _judge(self, raw: bytes, user: str | None) -> tuple[Envelope | None, BaseModel | None, str | None]:
        envelope: Envelope | None = None
        try:
            envelope = codec.decode_envelope(raw)
            body = codec.body_of(envelope)
        except ContractError as error:
            return envelope or _sender_at_least(raw), None, str(error)
        if envelope.environment != self._environment:
            return envelope, body, f"It comes from another environment, {envelope.environment!r}."
        if self._roles_of_users is not None:
            role = self._roles_of_users.get(user or "")
            if role != envelope.sender.role:
                return (
                    envelope,
                    body,
                    f"It claims to come from {envelope.sender.role!r}, but the broker says {user!r}.",
                )
        return envelope, body, None


def _sender_at_least(raw: bytes) -> Envelope | None:
    """Who sent a message that is too large, and about what: a handoff that is parked still ends its attempt."""
    try:
        return codec.decode_envelope(raw, limit=LARGEST_READ_BYTES)
    except ContractError:
        return None

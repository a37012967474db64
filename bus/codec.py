"""Envelopes to bytes and back: MessagePack, checked on both sides.

The sender is told about its own mistake (`encode`), and the receiver trusts nothing (`decode`). Path names that are
not UTF-8 travel as surrogate escapes inside Python and as their own bytes on the wire.
"""

from typing import Any

import msgpack
from pydantic import BaseModel, ValidationError

from schemas.envelope import ENVELOPE_VERSION, MAX_ENVELOPE_BYTES, Envelope
from schemas.errors import ContractError
from schemas.messages import BODIES
from schemas.suggest import nearest

_FIELDS = tuple(name for name in Envelope.model_fields if name not in ("sender", "lane"))


def encode(envelope: Envelope) -> bytes:
    """The bytes for the wire. Raises ContractError if the body breaks its kind's schema or the whole is over 1 MiB."""
    body_of(envelope)
    fields: dict[str, Any] = {
        name: value for name in _FIELDS if (value := getattr(envelope, name)) is not None
    }
    sender = envelope.sender
    fields["sender"] = {"role": sender.role, "instance": sender.instance, "version": sender.version}
    fields["lane"] = envelope.lane.value
    try:
        raw: bytes = msgpack.packb(fields, unicode_errors="surrogateescape")
    except (TypeError, ValueError, OverflowError) as error:
        raise ContractError(
            f"{envelope.kind}: the body holds something that does not travel: {error}.",
            suggestion="Build it with model_dump().",
        ) from error
    if len(raw) > MAX_ENVELOPE_BYTES:
        raise ContractError(
            f"{envelope.kind}: {len(raw)} bytes are more than the {MAX_ENVELOPE_BYTES} that a message may have.",
            suggestion="Put what grows into the hub as a blob and send its id.",
        )
    return raw


def decode(raw: bytes) -> Envelope:
    """The envelope of these bytes, its body checked. Raises ContractError that says what is wrong."""
    envelope = decode_envelope(raw)
    body_of(envelope)
    return envelope


def decode_envelope(raw: bytes, *, limit: int = MAX_ENVELOPE_BYTES) -> Envelope:
    """The envelope, its body not yet checked. Raises ContractError."""
    if len(raw) > limit:
        raise ContractError(f"The message has {len(raw)} bytes; {limit} are allowed.")
    try:
        fields = msgpack.unpackb(raw, unicode_errors="surrogateescape")
    except (ValueError, TypeError, RecursionError) as error:
        raise ContractError(
            f"The message is not MessagePack: {str(error) or type(error).__name__}."
        ) from error
    try:
        envelope = Envelope.model_validate(fields)
    except ValidationError as error:
        raise ContractError(f"The envelope breaks its schema: {_first(error)}.") from error
    if envelope.v > ENVELOPE_VERSION:
        raise ContractError(
            f"The envelope has version {envelope.v}; this process reads up to {ENVELOPE_VERSION}.",
            suggestion="Upgrade the process that received it.",
        )
    return envelope


def body_of(envelope: Envelope) -> BaseModel:
    """The body as the model of its kind. Raises ContractError if the kind is unknown or the body breaks its schema."""
    model = BODIES.get(envelope.kind)
    if model is None:
        hint = nearest(envelope.kind, BODIES)
        meant = f"Did the sender mean {hint!r}?" if hint else ""
        raise ContractError(f"There is no message kind {envelope.kind!r}.", suggestion=meant)
    try:
        return model.model_validate(envelope.body)
    except ValidationError as error:
        raise ContractError(f"{envelope.kind}: the body breaks its schema: {_first(error)}.") from error


def _first(error: ValidationError) -> str:
    # The first fault is enough to mend, and the whole text could quote the message back at full length.
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in fault["loc"])
    return f"{where}: {fault['msg']}" if where else fault["msg"]

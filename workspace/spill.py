"""Handoffs that grew: a field over 64 KiB travels as a blob in the hub, and the envelope carries its id and digest.

The reader checks the digest before it believes a byte; a field that does not fit its model ends as an error, as the
same bytes in the envelope would have.
"""

from hashlib import sha256
from typing import Any

import msgpack
from pydantic import ValidationError

from schemas.envelope import MAX_INLINE_BYTES
from schemas.errors import ContractError
from schemas.handoff import Handoff, Spill
from workspace.hub import Hub
from workspace.refs import blob_ref

# What can grow with the size of the work; everything else has a size of its own.
SPILLABLE = (
    "output", "findings", "files", "residue", "risks", "evidence", "provenance", "open_questions", "suggested_next",
)  # fmt: skip
# Nothing that a step reports is larger; more is a worker that means harm, and would go through memory.
MAX_SPILL_BYTES = 256 * 1024 * 1024


def spill(handoff: Handoff, hub: Hub, task: str) -> Handoff:
    """The handoff with its large fields in the hub, each kept alive by a ref of the task."""
    whole = handoff.model_dump(mode="python", include=set(SPILLABLE))
    spilled = dict(handoff.spilled)
    emptied: dict[str, Any] = {}
    for field in SPILLABLE:
        packed: bytes = msgpack.packb(whole[field], unicode_errors="surrogateescape")
        if len(packed) <= MAX_INLINE_BYTES:
            continue
        digest = sha256(packed).hexdigest()
        blob = hub.write_blob(packed, ref=blob_ref(task, digest[:40]))
        spilled[field] = Spill(blob=blob, digest=digest, count=len(whole[field]), size_bytes=len(packed))
        emptied[field] = {} if field == "output" else ()
    return handoff.model_copy(update={**emptied, "spilled": spilled}) if emptied else handoff


def unspill(handoff: Handoff, hub: Hub) -> Handoff:
    """The handoff with all its fields again. Raises ContractError if a blob is not what was announced."""
    if not handoff.spilled:
        return handoff
    fields = {name: _read(name, spilled, hub) for name, spilled in handoff.spilled.items()}
    whole = handoff.model_dump(mode="python") | fields | {"spilled": {}}
    try:
        return Handoff.model_validate(whole)
    except ValidationError as error:
        raise ContractError(f"A spilled field breaks its schema: {error.errors()[0]['msg']}.") from error


def _read(name: str, spilled: Spill, hub: Hub) -> Any:
    if name not in SPILLABLE:
        raise ContractError(f"The field {name!r} of a handoff may not be spilled.")
    if spilled.size_bytes > MAX_SPILL_BYTES or hub.size(spilled.blob) > MAX_SPILL_BYTES:
        raise ContractError(f"The spilled field {name!r} is larger than {MAX_SPILL_BYTES} bytes.")
    packed = hub.read(spilled.blob)
    if sha256(packed).hexdigest() != spilled.digest:
        raise ContractError(f"The spilled field {name!r} is not what its digest says.")
    try:
        return msgpack.unpackb(packed, unicode_errors="surrogateescape", strict_map_key=False)
    except ValueError as error:
        raise ContractError(f"The spilled field {name!r} does not decode.") from error

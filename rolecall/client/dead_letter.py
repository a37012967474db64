"""A parked message in words: its reason, and as much of its content as can be read."""

import json
from typing import Any

import msgpack

from rolecall.client.phrases import one_line, printable
from schemas.report import DeadLine

# What does not decode is shown as bytes, as far as a person would look.
BYTES_SHOWN = 256


def told(line: DeadLine, data: bytes) -> str:
    """The message as text."""
    head = (
        f"id        {line.id}",
        f"kind      {printable(line.kind)}",
        f"task      {printable(line.task)}",
        f"queue     {printable(line.queue)}",
        f"size      {line.size_bytes:,} bytes",
        f"reason    {one_line(line.reason, 2000)}",
    )
    return "\n".join((*head, "", _content(data)))


def _content(data: bytes) -> str:
    try:
        value = msgpack.unpackb(data, raw=False, strict_map_key=False)
    except Exception:  # msgpack raises a dozen kinds for bytes that are none of its own
        more = (
            f"\n... {len(data) - BYTES_SHOWN:,} bytes more; --raw has them" if len(data) > BYTES_SHOWN else ""
        )
        return f"It does not decode. It begins with:\n{data[:BYTES_SHOWN]!r}{more}"
    return printable(json.dumps(value, indent=2, ensure_ascii=False, default=_bytes))


def _bytes(value: Any) -> str:
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else repr(value)

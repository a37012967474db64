"""Messages between a role process and its child processes: MessagePack behind four bytes of length."""

import struct
from typing import Any, BinaryIO

import msgpack

from schemas.errors import WorkspaceError

LENGTH = struct.Struct(">I")
# A handoff is small once it has spilled; more is a stream that lost its step.
MAX_FRAME_BYTES = 64 * 1024 * 1024


def pack_frame(message: dict[str, Any]) -> bytes:
    """One message with its length."""
    packed: bytes = msgpack.packb(message, unicode_errors="surrogateescape")
    if len(packed) > MAX_FRAME_BYTES:
        raise WorkspaceError(f"A message of {len(packed)} bytes is too large for a child process.")
    return LENGTH.pack(len(packed)) + packed


def unpack_frame(packed: bytes) -> dict[str, Any]:
    """The message of a frame, without its length."""
    message: dict[str, Any] = msgpack.unpackb(packed, unicode_errors="surrogateescape", strict_map_key=False)
    return message


def frame_length(head: bytes) -> int:
    """How many bytes follow these four. Raises WorkspaceError if that cannot be."""
    (length,) = LENGTH.unpack(head)
    if length > MAX_FRAME_BYTES:
        raise WorkspaceError(f"A child process announced a message of {length} bytes.")
    return int(length)


def read_frame(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message, None at the end of the stream."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    length = frame_length(head)
    packed = stream.read(length)
    return unpack_frame(packed) if len(packed) == length else None

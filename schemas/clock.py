"""The one place that reads the wall clock and mints ids.

Everything else receives time as an argument or a message, so that tests can move it and replay is exact.
"""

import time
import uuid

import uuid_utils


def now_us() -> int:
    """Wall-clock time in integer microseconds since the Unix epoch, UTC."""
    return time.time_ns() // 1_000


def new_id() -> str:
    """A fresh UUIDv7 (RFC 9562): sortable by time of birth, unique across machines."""
    return str(uuid_utils.uuid7())


def born_us(uuid7: str) -> int:
    """The birth time held in a UUIDv7, in microseconds (the format keeps milliseconds)."""
    return (uuid.UUID(uuid7).int >> 80) * 1_000

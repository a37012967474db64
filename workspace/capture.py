"""The output of a job as it is kept: both ends in memory, up to a cap on disk, a digest of all of it."""

from hashlib import sha256
from pathlib import Path
from typing import BinaryIO


class Capture:
    """Takes output in pieces of any size. `log_bytes` caps the file, `keep_bytes` each of the ends."""

    def __init__(self, log: BinaryIO, *, log_bytes: int, keep_bytes: int) -> None:
        self.size_bytes = 0
        self._log = log
        self._log_bytes = log_bytes
        self._keep_bytes = keep_bytes
        self._digest = sha256()
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        room = self._log_bytes - self.size_bytes
        if room > 0:
            self._log.write(piece[:room])
            if len(piece) > room:
                self._log.write(b"\n... the rest is not kept ...\n")
        self.size_bytes += len(piece)
        self._digest.update(piece)
        missing = self._keep_bytes - len(self._head)
        self._head += piece[:missing]
        self._tail += piece[missing:] if missing < len(piece) else b""
        if len(self._tail) > 4 * self._keep_bytes:
            del self._tail[: -self._keep_bytes]

    @property
    def digest(self) -> str:
        """SHA-256 of all output."""
        return self._digest.hexdigest()

    @property
    def head(self) -> str:
        """The beginning."""
        return bytes(self._head).decode("utf-8", "replace")

    @property
    def tail(self) -> str:
        """The end; empty if the beginning is all."""
        return bytes(self._tail[-self._keep_bytes :]).decode("utf-8", "replace")


def open_log(path: Path) -> BinaryIO:
    """The file for a job's output, in a folder that is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("wb")

"""Where log records end up: a bounded file of JSON lines, and a terminal with one readable line each.

A log that cannot be written (a full disk, a terminal that is gone) is no reason for a process to fail.
"""

import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Protocol

from bus.owner_only import make_folder

# A file and one predecessor per process: enough for the story of a run, little enough for a laptop.
MAX_FILE_BYTES = 8 * 1024 * 1024
# Files of processes that are gone, the oldest removed first.
MAX_FILES = 60

_TERMINAL_IDS = ("task", "step", "attempt", "contract", "instance", "pool", "reason", "error")
_MARKS = {"warning": "! ", "error": "!! ", "critical": "!! "}

Record = Mapping[str, Any]


class Sink(Protocol):
    """Takes finished, redacted records."""

    def write(self, record: Record) -> None:
        """Write one record; never raises."""

    def close(self) -> None:
        """Let go of what is open."""


class LogFile:
    """`<process>.jsonl`, its owner's alone; when it is full it becomes `<process>.jsonl.1` and a new one begins."""

    def __init__(self, folder: Path, process: str, *, max_bytes: int | None = None) -> None:
        make_folder(folder)
        _remove_oldest(folder)
        self.path = folder / f"{process}.jsonl"
        self._max_bytes = max_bytes or MAX_FILE_BYTES
        self._lock = threading.Lock()
        self._open()

    def write(self, record: Record) -> None:
        """Append the record as one line, with one system call."""
        text = json.dumps(record, default=str, ensure_ascii=False)
        line = text.encode("utf-8", "backslashreplace") + b"\n"
        with self._lock, suppress(OSError):
            if self._size and self._size + len(line) > self._max_bytes:
                self._turn_over()
            self._size += os.write(self._handle, line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def _open(self) -> None:
        # The mode counts from the first byte on.
        self._handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._handle).st_size

    def _turn_over(self) -> None:
        self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        old = self._handle
        self._open()
        os.close(old)


class Terminal:
    """Readable lines for people."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, record: Record) -> None:
        """Print the record as one line."""
        with suppress(OSError, ValueError):  # gone, or closed
            self._stream.write(one_line(record) + "\n")
            self._stream.flush()

    def close(self) -> None:
        """The stream is not ours to close."""


class Alarms(Terminal):
    """Errors alone, each sentence once: for a terminal that shows something else."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(stream)
        self._told: set[object] = set()

    def write(self, record: Record) -> None:
        """Print an error that was not told yet."""
        text = record.get("text")
        if record.get("level") in ("error", "critical") and text not in self._told:
            self._told.add(text)
            super().write(record)


def one_line(record: Record) -> str:
    """A record as a person reads it: time, process, sentence, and the ids that tell it from its neighbours."""
    ids = " ".join(f"{name}={record[name]}" for name in _TERMINAL_IDS if record.get(name) not in (None, ""))
    last = str(record["exception"]).strip().rsplit("\n", 1)[-1] if record.get("exception") else ""
    sentence = _MARKS.get(str(record.get("level")), "") + str(record.get("text", ""))
    who = f"{record.get('role') or record.get('process') or '':<16}"
    return _printable("  ".join(part for part in (_clock_time(record), who, sentence, ids, last) if part))


def _clock_time(record: Record) -> str:
    try:
        return datetime.fromisoformat(str(record["at"])).astimezone().strftime("%H:%M:%S")
    except (KeyError, ValueError):
        return "--:--:--"


def _printable(line: str) -> str:
    """No line breaks and no terminal commands: a message's text must not move the reader's cursor."""
    return line if line.isprintable() else "".join(one if one.isprintable() else " " for one in line)


def _remove_oldest(folder: Path) -> None:
    files = sorted(folder.glob("*.jsonl*"), key=lambda file: file.stat().st_mtime, reverse=True)
    for old in files[MAX_FILES:]:
        old.unlink(missing_ok=True)

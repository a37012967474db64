"""Logging of a process: JSON lines in a file of its own, and one readable line each on the terminal.

A record is a full sentence, an `action` word that stays the same for ever, and the ids it is about. Rules: secrets are
hidden before a record reaches any handler; a record is one line; files are bounded in size and number; what other
libraries log through `logging` takes the same way.
"""

import logging
import os
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, TextIO

import structlog

from bus.owner_only import make_folder
from bus.redaction import redact
from schemas import clock

# A file and one predecessor per process: enough for the story of a run, little enough for a laptop.
MAX_FILE_BYTES = 8 * 1024 * 1024
OLD_FILES = 1
# Files of processes that are gone, the oldest removed first.
MAX_FILES = 60

_TERMINAL_IDS = ("task", "step", "attempt", "contract", "instance", "pool", "reason", "error")

EventDict = MutableMapping[str, Any]


@contextmanager
def logging_to(
    folder: Path | None, process: str, *, level: str = "info", terminal: TextIO | None
) -> Iterator[Path | None]:
    """Log to `folder/<process>.jsonl` (None: no file) and to the terminal (None: not); yields the file's path."""
    path = _open_place(folder, process) if folder is not None else None
    handlers = [*_file_handlers(path, process), *_terminal_handlers(terminal, process)]
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    root.handlers, root.level = handlers, logging.getLevelName(level.upper())
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            *_shared(process),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    try:
        yield path
    finally:
        root.handlers, root.level = before
        structlog.reset_defaults()
        for handler in handlers:
            handler.close()


def one_line(event: EventDict) -> str:
    """A record as a person reads it: time, process, sentence, and the ids that tell it from its neighbours."""
    mark = {"warning": "! ", "error": "!! ", "critical": "!! "}.get(str(event.get("level")), "")
    ids = " ".join(f"{name}={event[name]}" for name in _TERMINAL_IDS if event.get(name) not in (None, ""))
    last = str(event["exception"]).strip().rsplit("\n", 1)[-1] if event.get("exception") else ""
    parts = (
        _clock_time(event),
        f"{event.get('role') or event.get('process') or '':<16}",
        mark + str(event.get("text", "")),
        ids,
        last,
    )
    return _printable("  ".join(part for part in parts if part))


def _open_place(folder: Path, process: str) -> Path:
    make_folder(folder)
    files = sorted(folder.glob("*.jsonl*"), key=lambda file: file.stat().st_mtime, reverse=True)
    for old in files[MAX_FILES:]:
        old.unlink(missing_ok=True)
    return folder / f"{process}.jsonl"


def _file_handlers(path: Path | None, process: str) -> list[logging.Handler]:
    if path is None:
        return []
    handler = _OwnFileHandler(
        path, maxBytes=MAX_FILE_BYTES, backupCount=OLD_FILES, encoding="utf-8", errors="backslashreplace"
    )
    handler.setFormatter(
        _formatter(structlog.processors.JSONRenderer(default=str, ensure_ascii=False), process)
    )
    return [handler]


def _terminal_handlers(terminal: TextIO | None, process: str) -> list[logging.Handler]:
    if terminal is None:
        return []
    handler = logging.StreamHandler(terminal)
    handler.setFormatter(_formatter(lambda _logger, _name, event: one_line(event), process))
    return [handler]


class _OwnFileHandler(RotatingFileHandler):
    """Every file it opens is its owner's alone from the first byte on."""

    def _open(self) -> TextIOWrapper:
        def opener(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        # The mode is RotatingFileHandler's own, always "a".
        return open(self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=opener)


def _formatter(render: structlog.typing.Processor, process: str) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
        foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *_shared(process)],
    )


def _shared(process: str) -> Sequence[structlog.typing.Processor]:
    """What every record goes through, whoever wrote it; redaction comes last, so nothing is added after it."""

    def shape(_logger: Any, _name: str, event: EventDict) -> EventDict:
        head = {
            "at": datetime.fromtimestamp(clock.now_us() / 1e6, UTC).isoformat(timespec="milliseconds"),
            "level": event.pop("level", "info"),
            "process": process,
            "action": event.pop("action", "library"),
            "text": event.pop("event", ""),
        }
        return {**head, **event}

    return (
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.format_exc_info,
        shape,
        _redacted,
    )


def _redacted(_logger: Any, _name: str, event: EventDict) -> EventDict:
    # The two underscored entries are the formatter's own and never written.
    return {key: one if key.startswith("_") else redact({key: one})[key] for key, one in event.items()}


def _clock_time(event: EventDict) -> str:
    try:
        return datetime.fromisoformat(str(event["at"])).astimezone().strftime("%H:%M:%S")
    except (KeyError, ValueError):
        return "--:--:--"


def _printable(line: str) -> str:
    """No line breaks and no terminal commands: a message's text must not move the reader's cursor."""
    return "".join(one if one.isprintable() else " " for one in line)

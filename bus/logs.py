"""Logging of a process: JSON lines in a file of its own, and one readable line each on the terminal.

A record is a full sentence, an `action` word that stays the same for ever, and the ids it is about. Rules: secrets are
hidden before a record is written anywhere; what libraries log through `logging` takes the same way.

    log.info("Took %s.", what, action="work_accepted", task=task, lane=lane)
"""

import logging
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import structlog

from bus.log_sinks import LogFile, Sink, Terminal
from bus.redaction import redact_fields
from schemas import clock

EventDict = MutableMapping[str, Any]

# What a LogRecord has by itself; whatever else is on one was given with `extra`.
_PLAIN_RECORD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


@contextmanager
def logging_to(
    folder: Path | None, process: str, *, level: str = "info", terminal: Terminal | None
) -> Iterator[Path | None]:
    """Log to `folder/<process>.jsonl` (None: no file) and to the terminal (None: not); yields the file's path."""
    file = LogFile(folder, process) if folder is not None else None
    sinks: list[Sink] = [sink for sink in (file, terminal) if sink is not None]
    threshold = logging.getLevelNamesMapping()[level.upper()]
    finisher = _Finisher(process, sinks)
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    root.handlers, root.level = [_FromLibraries(finisher)], threshold
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, structlog.stdlib.add_log_level, finisher],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        cache_logger_on_first_use=False,
    )
    try:
        yield file.path if file else None
    finally:
        root.handlers, root.level = before
        structlog.reset_defaults()
        for sink in sinks:
            sink.close()


class _Finisher:
    """The end of every record, whoever made it: its shape, redaction, and the sinks."""

    def __init__(self, process: str, sinks: Sequence[Sink]) -> None:
        self._process = process
        self._sinks = sinks

    def __call__(self, _logger: Any, _name: str, event: EventDict) -> NoReturn:
        """The last processor of structlog: nothing goes on to a logger behind it."""
        self.finish(event)
        raise structlog.DropEvent

    def finish(self, event: EventDict) -> None:
        """Write one record; redaction comes after everything that adds to it."""
        event = structlog.processors.format_exc_info(None, "", event)
        head = {
            "at": datetime.fromtimestamp(clock.now_us() / 1e6, UTC).isoformat(timespec="milliseconds"),
            "level": event.pop("level", "info"),
            "process": self._process,
            "action": event.pop("action", "library"),
            "text": event.pop("event", ""),
        }
        record = redact_fields(head | dict(event))
        for sink in self._sinks:
            sink.write(record)


class _FromLibraries(logging.Handler):
    """Gives what is logged through `logging` the same end."""

    def __init__(self, finisher: _Finisher) -> None:
        super().__init__()
        self._finisher = finisher

    def emit(self, record: logging.LogRecord) -> None:
        """Make an event of the record and finish it."""
        event = {name: value for name, value in record.__dict__.items() if name not in _PLAIN_RECORD}
        try:
            event |= {
                "event": record.getMessage(),
                "level": record.levelname.lower(),
                "exc_info": record.exc_info,
            }
            self._finisher.finish(event)
        except Exception:
            self.handleError(record)

"""Who is there: the roll call that the supervisor keeps, and the supervisor itself, which calls and is not called."""

import fcntl
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bus.instance import host_name, started_us
from schemas.clock import now_us
from schemas.report import WorkerLine
from schemas.version import VERSION
from supervisor.house import LOCK_FILE
from supervisor.journal.reader import JournalReader

ABSENT = ("lost", "gone")


def roll_call(reader: JournalReader, state_dir: Path, *, everyone: bool = False) -> Sequence[WorkerLine]:
    """Every process that answers; with `everyone` those that were lost or left, too."""
    workers = [one for one in reader.workers() if everyone or one.state not in ABSENT]
    return [*_supervisor(state_dir), *workers]


def _supervisor(state_dir: Path) -> list[WorkerLine]:
    """The supervisor, if one holds its lock: that is its sign of life on this machine."""
    with suppress(OSError, ValueError), (state_dir / LOCK_FILE).open("rb") as lock:
        if not _is_held(lock.fileno()):
            return []
        pid = int(lock.read().decode("ascii"))
        start = (started_us(pid) or 0) // 1_000_000
        host = host_name()
        return [
            WorkerLine(
                instance=f"{host}-{pid}-{start}", role="supervisor", pool="", host=host, pid=pid, version=VERSION,
                slots=0, state="ready", heartbeat_at=now_us(),
            )
        ]  # fmt: skip
    return []


def _is_held(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(handle, fcntl.LOCK_UN)
    return False

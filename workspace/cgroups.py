"""A control group around one job: memory and number of processes for all of its tree, and a sure way to kill it.

Found where we may make one (as root, in a delegated slice, version 1 or 2); elsewhere there is none, and the job's
processes are limited one by one.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from signal import SIGKILL
from time import monotonic, sleep

_ROOT = Path("/sys/fs/cgroup")
_OURS = re.compile(r"rolecall-(\d+)-\d+")
_NUMBERS = count()
# How long killed processes may take to leave; they hold no lock that could keep them longer.
_LEAVE_S = 5.0


@dataclass(frozen=True, slots=True)
class _Place:
    """Where job groups can be made, and what the files in them are called."""

    folders: tuple[Path, ...]
    memory: str
    swap: str
    events: str


@dataclass(frozen=True, slots=True)
class JobGroup:
    """The control group (version 1: groups) of one job."""

    folders: tuple[Path, ...]
    _events: str

    @property
    def join_files(self) -> tuple[str, ...]:
        """Files into which a process writes `0` to be in the group."""
        return tuple(str(folder / "cgroup.procs") for folder in self.folders)

    def oom_kills(self) -> int:
        """How many processes the kernel has killed for memory."""
        with suppress(OSError):
            found = re.search(
                r"^oom_kill (\d+)", (self.folders[0] / self._events).read_text("ascii"), re.MULTILINE
            )
            return int(found[1]) if found else 0
        return 0

    def cpu_ms(self) -> int | None:
        """The CPU time of all that was ever in the group, None where the kernel does not count it by groups."""
        for folder in self.folders:
            with suppress(OSError):
                return int((folder / "cpuacct.usage").read_text("ascii")) // 1_000_000
            with suppress(OSError):
                found = re.search(
                    r"^usage_usec (\d+)", (folder / "cpu.stat").read_text("ascii"), re.MULTILINE
                )
                if found:
                    return int(found[1]) // 1000
        return None

    def kill_members(self) -> None:
        """Kill all that is in the group, until nothing is."""
        deadline = monotonic() + _LEAVE_S
        while any(list(map(_kill_members, self.folders))) and monotonic() < deadline:
            sleep(0.002)

    def kill(self) -> None:
        """Kill all that is in the group, and remove it."""
        self.kill_members()
        deadline = monotonic() + _LEAVE_S
        while not all(list(map(_remove, self.folders))) and monotonic() < deadline:
            sleep(0.002)


def job_group(memory_bytes: int, processes: int) -> JobGroup | None:
    """A fresh group with these limits, None if this machine does not let us make one."""
    place = _place()
    if place is None:
        return None
    name = f"rolecall-{os.getpid()}-{next(_NUMBERS)}"
    folders = tuple(folder / name for folder in place.folders)
    group = JobGroup(folders, place.events)
    try:
        for folder in folders:
            folder.mkdir()
        (folders[0] / place.memory).write_text(str(memory_bytes))
        (folders[-1] / "pids.max").write_text(str(processes))
    except OSError:
        group.kill()
        return None
    for file, value in ((place.swap, _swap_value(place, memory_bytes)), ("memory.oom.group", "1")):
        with suppress(OSError):
            if (folders[0] / file).exists():
                (folders[0] / file).write_text(value)
    return group


@cache
def _place() -> _Place | None:
    """Looked up once: whether groups can be made does not change under a running process."""
    mine = _own_groups()
    unified = [_ROOT / mine[""].lstrip("/")] if "" in mine and (_ROOT / "cgroup.controllers").exists() else []
    for folder in [*unified, *(one.parent for one in unified if one != _ROOT)]:
        place = _Place((folder,), "memory.max", "memory.swap.max", "memory.events")
        if _works(place):
            return place
    for names in (("memory", "cpuacct", "pids"), ("memory", "pids")):
        if all(name in mine for name in names):
            folders = tuple(_ROOT / name / mine[name].lstrip("/") for name in names)
            place = _Place(
                folders, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"
            )
            if _works(place):
                return place
    return None


def _own_groups() -> dict[str, str]:
    """Our own group's path by controller; the empty name is version 2."""
    found: dict[str, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text("utf-8").splitlines():
            _, names, path = line.split(":", 2)
            found |= dict.fromkeys(names.split(","), path)
    return found


def _works(place: _Place) -> bool:
    for folder in place.folders:
        _sweep(folder)
    name = f"rolecall-{os.getpid()}-{next(_NUMBERS)}"
    folders = [folder / name for folder in place.folders]
    try:
        for folder in folders:
            folder.mkdir()
        return os.access(folders[0] / place.memory, os.W_OK) and os.access(folders[-1] / "pids.max", os.W_OK)
    except OSError:
        return False
    finally:
        for folder in folders:
            with suppress(OSError):
                folder.rmdir()


def _sweep(folder: Path) -> None:
    """Remove groups of processes of ours that were killed."""
    with suppress(OSError):
        for one in folder.glob("rolecall-*"):
            owner = _OURS.fullmatch(one.name)
            if owner and not Path("/proc", owner[1]).exists():
                _kill_members(one)
                _remove(one)


def _kill_members(folder: Path) -> bool:
    """True while there was somebody to kill."""
    pids: list[str] = []
    with suppress(OSError):
        pids = (folder / "cgroup.procs").read_text("ascii").split()
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(int(pid), SIGKILL)
    return bool(pids)


def _remove(folder: Path) -> bool:
    """True once it is gone."""
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def _swap_value(place: _Place, memory_bytes: int) -> str:
    # Version 1 limits memory and swap together, version 2 swap alone.
    return str(memory_bytes) if place.swap.startswith("memory.memsw") else "0"

"""Ending processes for good: groups, whole families, and daemons that left both but still carry our mark.

Only processes that we started are ever touched: by the pid we hold, or by the mark in their environment.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, SIGSTOP
from time import monotonic, sleep

import psutil

# The environment variable that every process of a job inherits; its value is the pid of the process that answers
# for it, a dash, a name, and a dot (so that no name begins another).
MARK = "ROLECALL_JOB"
# How long killed processes may take to leave; they hold no lock that could keep them longer.
_LEAVE_S = 5.0


def kill_group(group: int) -> None:
    """Kill a process group that we made."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, SIGKILL)


def kill_family(pid: int, mark: str) -> None:
    """Kill a process of ours, its group, all its descendants, and who carries its mark or one of its jobs'."""
    # Stopped first, so that it cannot start another child between our look and our blow.
    with suppress(ProcessLookupError):
        os.kill(pid, SIGSTOP)
    with suppress(psutil.Error):
        for one in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                one.kill()
    kill_group(pid)
    with suppress(ProcessLookupError):
        os.kill(pid, SIGKILL)
    kill_marked(mark, f"{pid}-")


def kill_marked(*values: str) -> None:
    """Kill every process whose mark begins with one of these, until there is none: a fork may escape one look."""
    deadline = monotonic() + _LEAVE_S
    while found := tuple(_marked(*(f"{MARK}={value}".encode() for value in values))):
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, SIGKILL)
        if monotonic() > deadline:
            return
        sleep(0.005)


def kill_orphans() -> None:
    """Kill what a process of ours that was killed has left: a sandbox takes all along, a work function may not."""
    for mark in {_mark_of(pid) for pid in _marked(f"{MARK}=".encode())}:
        worker = mark.partition("-")[0]
        if worker.isdecimal() and not Path("/proc", worker).exists():
            kill_marked(mark)


def _mark_of(pid: int) -> str:
    with suppress(OSError):
        for pair in Path("/proc", str(pid), "environ").read_bytes().split(b"\0"):
            if pair.startswith(f"{MARK}=".encode()):
                return pair.partition(b"=")[2].decode("ascii", "replace")
    return ""


def _marked(*marks: bytes) -> Iterable[int]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        with suppress(OSError):
            # A zombie has no environment any more, so it is not found again.
            if any(pair.startswith(marks) for pair in (folder / "environ").read_bytes().split(b"\0")):
                yield int(folder.name)

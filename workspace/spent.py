"""What a job took of the processors, from the best witness there is.

A control group counts everybody in it, whoever reaped them. Without one the launcher tells what it reaped. What was
killed before the launcher could tell is looked at just before, which may miss who had ended unseen.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Spent:
    """CPU time, user and system, of all processes of a job; at least that much if it is not whole."""

    cpu_ms: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class LauncherReport:
    """What the launcher told: the job's exit code (negative: the signal that ended it), and what it reaped."""

    exit_code: int
    spent: Spent

    @classmethod
    def read(cls, said: bytes) -> "LauncherReport | None":
        """None if it was killed before it could tell."""
        if not said:
            return None
        told = json.loads(said)
        spent = Spent(round(told["cpu_s"] * 1000), is_whole=told["whole"])
        return cls(os.waitstatus_to_exitcode(told["status"]), spent)


def spent_by(told: LauncherReport | None, group_cpu_ms: int | None, seen: Sequence[Spent]) -> Spent:
    """The best of what is known."""
    if group_cpu_ms is not None:
        return Spent(group_cpu_ms, is_whole=True)
    known = [*([told.spent] if told else []), *seen]
    return max(known, key=lambda one: one.cpu_ms, default=Spent(0, is_whole=False))


def spent_until_now(pid: int) -> Spent:
    """What a process and its living descendants have taken, with what they reaped."""
    total_s = 0.0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                total_s += sum(one.cpu_times()[:4])
    return Spent(round(total_s * 1000), is_whole=False)

"""Started before every job: takes on its limits, starts the job, waits for it, and tells how it ended and what it took.

It imports nothing of ours, because it starts in ten milliseconds that way, and because what comes after it is not ours.
It runs alone (`python -I -S launcher.py`), and adopts what the job leaves behind: the first process of a sandbox is
often reaped by nobody else, and with it everything that ran in there would be missing from the CPU time.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
CANNOT_RUN = "launcher: cannot run "
# The first process of a sandbox is killed by the kernel when bwrap ends, so it is seldom longer than a moment behind.
_ADOPTED_LEAVE_S = 2.0


def main() -> int:
    """argv: an order (JSON: cgroups to join, limits by name, the parent's pid, the descriptor for the report), then
    the command. The report is JSON: `status` as `wait` gives it, `cpu_s`, and `whole`: whether nothing is left."""
    order = json.loads(sys.argv[1])
    command = sys.argv[2:]
    for file in order["cgroups"]:
        with open(file, "w", encoding="ascii") as procs:  # noqa: PTH123 - one import less
            procs.write("0")
    os.set_inheritable(order["report"], False)
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != order["parent"]:
        return 1
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for name, (soft, hard) in order["limits"].items():
        kind = getattr(resource, name)
        _, most = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(kind, (soft, hard))
    launcher = os.getpid()
    job = os.fork()
    if job == 0:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == launcher:
            _become(command)
        os._exit(127)
    status = _wait(job)
    whole = _reap(_ADOPTED_LEAVE_S if order["shut_in"] else 0)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = {"status": status, "cpu_s": spent.ru_utime + spent.ru_stime, "whole": whole}
    os.write(order["report"], json.dumps(report).encode())
    return 0


def _become(command: list[str]) -> None:
    try:
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"{CANNOT_RUN}{command[0]}: {error.strerror}\n".encode())


def _wait(job: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == job:
            return status


def _reap(wait_s: float) -> bool:
    """Reap what was left to us, waiting so long at most; says whether nobody is left."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.001)


if __name__ == "__main__":
    sys.exit(main())

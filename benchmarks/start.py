"""What it takes until a stack works, and what it takes while it does nothing: real processes, a private RabbitMQ node.

Measured: seconds from `rolecall up` to the connection file (broker up, every role announced), beside the broker alone;
and the memory of each idle role process, its slot's children apart. The limits are the issue's.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks.endings import unwind_on_sigterm
from benchmarks.table import Line, print_table
from bus.connection_file import live_connection
from rolecall.processes.private_node import start_node
from supervisor.journal.reader import JournalReader

ROUNDS = 3
READY_LIMIT_S = 12.0
MEMORY_LIMIT_MB = 80
GIVE_UP_S = 120.0
MB = 1_000_000


def main() -> int:
    """Measure and print; 1 if a limit is not kept."""
    unwind_on_sigterm()
    alone, ready, memory = [], [], {}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="rolecall-bench-") as name:
            began = time.monotonic()
            node = start_node(Path(name) / "node")
            alone.append(time.monotonic() - began)
            node.stop()
            began = time.monotonic()
            with stack(Path(name)) as state_dir:
                ready.append(time.monotonic() - began)
                memory = _memory(state_dir)
    median = statistics.median(ready)
    broker = statistics.median(alone)
    lines = [
        Line("everything ready, private broker included", f"{median:.1f} s (the broker alone {broker:.1f} s)",
             f"<= {READY_LIMIT_S:g} s", median <= READY_LIMIT_S),
        *(
            Line(f"idle {role}", f"{size / MB:.0f} MB", f"<= {MEMORY_LIMIT_MB} MB", size <= MEMORY_LIMIT_MB * MB)
            for role, size in sorted(memory.items())
        ),
    ]  # fmt: skip
    return print_table("Start and idle processes", lines)


@contextmanager
def stack(home: Path, *, executors: int = 2) -> Iterator[Path]:
    """`rolecall up` with so many executors, ready; yields its state folder."""
    env = {**os.environ, "XDG_STATE_HOME": str(home), "ROLECALL_ENVIRONMENT": "bench"}
    state_dir = home / "rolecall" / "bench"
    words = [sys.executable, "-m", "rolecall", "up", "--executors", str(executors)]
    process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + GIVE_UP_S
        while live_connection(state_dir) is None:
            if process.poll() is not None or time.monotonic() > limit:
                raise SystemExit("The stack did not start.")
            time.sleep(0.05)
        yield state_dir
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(GIVE_UP_S)


def _memory(state_dir: Path) -> dict[str, int]:
    """Resident bytes of each role's process, the largest where there are several."""
    reader = JournalReader.open(state_dir)
    try:
        pids = {line.pid: line.role for line in reader.workers() if line.state == "ready"}
    finally:
        reader.close()
    parent = psutil.Process(next(iter(pids))).ppid()
    for process in psutil.Process(parent).children():
        if "supervisor" in process.cmdline():
            pids[process.pid] = "supervisor"
    sizes: dict[str, int] = {}
    for pid, role in pids.items():
        sizes[role] = max(sizes.get(role, 0), psutil.Process(pid).memory_info().rss)
    return sizes


if __name__ == "__main__":
    sys.exit(main())

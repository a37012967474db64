"""What one action costs on its way: no-op actions through supervisor, RabbitMQ and two executors, all real processes.

The actions are granted, journaled, dispatched, accepted and handed off, and not reviewed or tested. Measured: actions
per second with many in flight, the cost per action at 2,000 beside that at 100, and, one at a time, how long it is from
dispatch to handoff. The rival, on the same broker in the same run, is `bare_loop`.

The promise is 500 actions/s and 10 ms where the bare loop makes 1,072 and 3.5 ms, so the ratios are what is checked:
they hold on any machine.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import bare_loop
from benchmarks.client import Client
from benchmarks.endings import unwind_on_sigterm
from benchmarks.table import Line, print_table
from bus.settings import load_settings
from rolecall.processes.private_node import start_node
from supervisor.house import opened_house
from supervisor.journal.reader import JournalReader
from supervisor.journal.trace import trace

SLOTS = 32
ROUNDS = 3
RATE_RATIO = 500 / 1_072
LATENCY_RATIO = 10 / 3.5


@dataclass(frozen=True, slots=True)
class Stack:
    """A running supervisor with planner and executors."""

    state_dir: Path
    client: Client
    broker_url: str


@contextmanager
def stack(folder: Path, slots: int) -> Iterator[Stack]:
    """A private node, a supervisor, a planner and two executors of `slots` slots."""
    node = start_node(folder / "node")
    environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "ROLECALL_ENVIRONMENT": "bench"}
    environ["ROLECALL_BROKER_URL"] = node.url
    settings = load_settings(environ)
    with opened_house(settings.state_dir) as house:
        environ["ROLECALL_PUBLIC_KEY"] = house.key.public_key.hex()
        environ["ROLECALL_HUB"] = str(house.hub)
    quiet = ["--log-level", "error"]
    commands = [["supervisor", *quiet], ["benchmarks.noop_role", "planner", *quiet]]
    commands += [["benchmarks.noop_role", "bench", "--slots", str(slots), *quiet]] * 2
    children = [subprocess.Popen([sys.executable, "-m", *command], env=environ) for command in commands]
    try:
        client = Client(settings.environment, node.url, Path(environ["ROLECALL_HUB"]))
        _wait_for(lambda: _roles(settings.state_dir) >= 3)
        yield Stack(settings.state_dir, client, node.url)
    finally:
        for child in reversed(children):
            child.terminate()
        for child in children:
            child.wait(30)
        node.stop()


def run_noops(one: Stack, steps: int) -> tuple[float, str]:
    """Seconds for a task of so many steps, from its first dispatch to its end, and its id."""
    task = one.client.submit_noops(steps)
    reader = JournalReader.open(one.state_dir)
    _wait_for(lambda: any(line.task == task and line.ended_at for line in reader.tasks()), 120)
    told = trace(reader, task)
    reader.close()
    noops = [action for action in told.actions if action.kind == "change"]
    starts = [
        attempt.dispatched_at for action in noops for attempt in action.attempts if attempt.dispatched_at
    ]
    ends = [action.ended_at for action in noops if action.ended_at]
    if len(ends) != steps:
        raise SystemExit(f"{len(ends)} of {steps} actions ended")
    return (max(ends) - min(starts)) / 1e6, task


def latencies_ms(one: Stack, count: int) -> list[float]:
    """From dispatch to handoff, one action at a time."""
    reader = JournalReader.open(one.state_dir)
    found: list[float] = []
    for _ in range(count):
        _, task = run_noops(one, 1)
        for action in trace(reader, task).actions:
            if action.kind == "change" and action.ended_at:
                found += [(action.ended_at - at) / 1e3 for at in [action.attempts[-1].dispatched_at] if at]
    reader.close()
    return found


def main() -> None:
    """Print the table; exit 1 if a limit is not kept."""
    unwind_on_sigterm()
    with (
        tempfile.TemporaryDirectory(prefix="rolecall-bench-") as folder,
        stack(Path(folder), SLOTS) as running,
    ):
        run_noops(running, 200)  # warm
        small = [run_noops(running, 100)[0] / 100 for _ in range(ROUNDS)]
        large = [run_noops(running, 2_000)[0] / 2_000 for _ in range(ROUNDS)]
        idle = latencies_ms(running, 30)
        bare_rate, bare_p50 = bare_loop.measure(running.broker_url, Path(folder), 2_000, SLOTS // 2)
    rate = 1 / statistics.median(large)
    growth = statistics.median(large) / statistics.median(small)
    p50 = statistics.median(idle)
    lines = [
        Line(
            f"no-op actions/s, two executors (bare loop {bare_rate:,.0f})",
            f"{rate:,.0f}, {rate / bare_rate:.2f} of bare",
            f">= {RATE_RATIO:.2f} of bare",
            rate / bare_rate >= RATE_RATIO,
        ),
        Line(
            f"idle, dispatch to handoff, p50 (bare loop {bare_p50:.1f} ms)",
            f"{p50:.1f} ms, {p50 / bare_p50:.1f} x bare",
            f"<= {LATENCY_RATIO:.1f} x bare",
            p50 / bare_p50 <= LATENCY_RATIO,
        ),
        Line("cost per action, 2,000 beside 100", f"{growth:.2f} x", "<= 1.3 x", growth <= 1.3),
    ]
    sys.exit(print_table("Control plane", lines))


def _roles(state_dir: Path) -> int:
    try:
        reader = JournalReader.open(state_dir)
    except Exception:  # the supervisor has not made it yet
        return 0
    try:
        return len(reader.workers())
    finally:
        reader.close()


def _wait_for(true: Callable[[], bool], limit_s: float = 40) -> None:
    until = time.monotonic() + limit_s
    while not true():
        if time.monotonic() > until:
            raise SystemExit("the stack did not get there in time")
        time.sleep(0.02)


if __name__ == "__main__":
    main()

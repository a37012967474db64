"""A role as a child process: kept alive, given up, stopped, with dummy commands in its place."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bus.instance import started_us
from rolecall.processes.child import Child, ChildSpec, GivenUpError, Restarts

LIMIT_S = 20.0
QUICK = Restarts(first_pause_s=0.01, longest_pause_s=0.02, deaths=3, within_s=60)


@dataclass
class Heard:
    """What children said, as (name, line)."""

    lines: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, name: str, line: str) -> None:
        self.lines.append((name, line))

    def has(self, text: str) -> bool:
        return any(text in line for _, line in self.lines)


def python(script: str, *, name: str = "executor-1", may_leave: bool = False) -> ChildSpec:
    return ChildSpec(name, (sys.executable, "-c", script), dict(os.environ), may_leave)


@asynccontextmanager
async def kept(child: Child) -> AsyncIterator["asyncio.Task[None]"]:
    keeping = asyncio.create_task(child.keep())
    try:
        yield keeping
    finally:
        child.kill()
        await asyncio.wait({keeping}, timeout=LIMIT_S)


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while True:
            if true():
                return
            await asyncio.sleep(0.01)


async def test_its_lines_are_passed_on_under_its_name() -> None:
    heard = Heard()

    async with kept(Child(python("import sys; print('one'); print('two', file=sys.stderr); input()"), heard)):
        await until(lambda: heard.has("two"))

    assert heard.lines[:1] == [("executor-1", "one")] or heard.lines[:1] == [("executor-1", "two")]


async def test_one_that_dies_is_started_again_as_another_process() -> None:
    heard = Heard()
    child = Child(python("import time; print('up', flush=True); time.sleep(60)"), heard, QUICK)

    async with kept(child):
        await until(lambda: heard.has("up"))
        first = child.pid
        assert first is not None
        os.kill(first, 9)
        await until(lambda: child.pid not in (None, first))

    assert heard.has("ended (killed by SIGKILL); starting it again in 0.01 s")
    assert child.lives == 2


async def test_one_that_dies_too_often_is_given_up_with_its_last_words() -> None:
    child = Child(python("print('no module named x'); raise SystemExit(1)"), Heard(), QUICK)

    with pytest.raises(GivenUpError, match=r"3 times within 60 s \(exit code 1\)[\s\S]*no module named x"):
        async with asyncio.timeout(LIMIT_S):
            await child.keep()

    assert child.lives == 3


async def test_wrong_settings_are_no_reason_to_try_again() -> None:
    child = Child(python("print('no hub'); raise SystemExit(2)"), Heard(), QUICK)

    with pytest.raises(GivenUpError, match=r"at once \(exit code 2\)[\s\S]*no hub"):
        async with asyncio.timeout(LIMIT_S):
            await child.keep()

    assert child.lives == 1


async def test_one_of_several_that_left_by_itself_stays_away() -> None:
    heard = Heard()
    child = Child(python("print('bye')", may_leave=True), heard, QUICK)

    async with asyncio.timeout(LIMIT_S):
        await child.keep()

    assert (child.lives, heard.has("not started again")) == (1, True)


async def test_asked_to_stop_it_may_finish_and_is_not_started_again(tmp_path: Path) -> None:
    done = tmp_path / "done"
    script = (
        "import signal, sys, pathlib, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path({str(done)!r}).touch(), sys.exit(0)))\n"
        "print('up', flush=True)\ntime.sleep(60)"
    )
    heard = Heard()
    child = Child(python(script), heard, QUICK)

    async with kept(child) as keeping:
        await until(lambda: heard.has("up"))
        child.ask_to_stop()
        await until(keeping.done)

    assert done.exists()
    assert child.lives == 1


async def test_killing_it_kills_what_it_started(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = (
        "import subprocess, sys, pathlib, time\n"
        "one = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(note)!r}).write_text(str(one.pid))\n"
        "print('up', flush=True)\ntime.sleep(60)"
    )
    heard = Heard()
    child = Child(python(script), heard, QUICK)

    async with kept(child):
        await until(lambda: heard.has("up"))
        child.kill()
        await until(lambda: started_us(int(note.read_text())) is None)

    assert child.pid is None


async def test_a_line_without_end_neither_stops_nor_fills_the_reader() -> None:
    heard = Heard()
    script = "import sys; sys.stdout.write('x' * 3_000_000 + '\\nafter\\n'); sys.stdout.flush(); input()"

    async with kept(Child(python(script), heard, QUICK)):
        await until(lambda: heard.has("after"))

    assert sum(len(line) for _, line in heard.lines) < 2_000_000

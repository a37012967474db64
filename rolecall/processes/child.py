"""One role as a child process: started in its own session, its lines passed on, started again when it dies.

A child that dies is started again after a growing pause. One that dies too often, or says that its settings are wrong,
is given up, with its last words.
"""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from schemas.clock import now_us
from schemas.errors import ExitCode, RolecallError

# A line longer than this is cut: it is no log record of ours.
LINE_LIMIT = 256 * 1024
LAST_WORDS = 8

Say = Callable[[str, str], None]
"""Takes a child's name and one line."""


class GivenUpError(RolecallError):
    """A child cannot be kept running."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """How often and how soon a child is started again: `deaths` within `within_s` are too many."""

    first_pause_s: float = 0.5
    longest_pause_s: float = 15.0
    deaths: int = 6
    within_s: float = 120.0


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What to start. `may_leave` marks one of several: if it ends well by itself, it wanted to."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    may_leave: bool = False


class Child:
    """One child over all its lives."""

    def __init__(self, spec: ChildSpec, say: Say, restarts: Restarts | None = None) -> None:
        self.spec = spec
        self._say = say
        self._restarts = restarts or Restarts()
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self._deaths: deque[int] = deque()
        self._last_words: deque[str] = deque(maxlen=LAST_WORDS)
        self.lives = 0

    @property
    def pid(self) -> int | None:
        """The process that runs now, or None."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def keep(self) -> None:
        """Start it and start it again until told to stop. Raises GivenUpError."""
        pause_s = self._restarts.first_pause_s
        while not self._stopping.is_set():
            born = now_us()
            code = await self._live()
            if self._stopping.is_set():
                return
            if code == 0 and self.spec.may_leave:
                self._say(self.spec.name, "left by itself; it is not started again")
                return
            if now_us() - born > self._restarts.within_s * 1_000_000:
                pause_s = self._restarts.first_pause_s
            self._note_death(code)
            self._say(self.spec.name, f"ended ({_how(code)}); starting it again in {pause_s:g} s")
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()
            pause_s = min(pause_s * 2, self._restarts.longest_pause_s)

    def ask_to_stop(self) -> None:
        """Do not start it again, and tell it to finish what it does."""
        self._stopping.set()
        self._signal(signal.SIGTERM, whole_session=False)

    def kill(self) -> None:
        """Do not start it again, and end it with all that it started."""
        self._stopping.set()
        self._signal(signal.SIGKILL, whole_session=True)

    async def _live(self) -> int:
        process = await asyncio.create_subprocess_exec(
            *self.spec.command,
            env=dict(self.spec.env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            limit=LINE_LIMIT,
        )
        self._process = process
        self.lives += 1
        if self._stopping.is_set():  # asked while it was being started
            self._signal(signal.SIGTERM, whole_session=False)
        reading = asyncio.create_task(self._pass_on(process))
        try:
            code = await process.wait()
            # What it started may hold the pipe open; its own last lines are there already.
            await asyncio.wait({reading}, timeout=1.0)
        finally:
            reading.cancel()
        return code

    async def _pass_on(self, process: asyncio.subprocess.Process) -> None:
        stream = process.stdout
        while stream is not None:
            try:
                line = await stream.readline()
            except ValueError:  # longer than the limit; the rest of it is passed over
                line = b"(a line too long to show)\n"
            if not line:
                return
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            self._last_words.append(text)
            self._say(self.spec.name, text)

    def _note_death(self, code: int) -> None:
        now = now_us()
        self._deaths.append(now)
        while self._deaths and now - self._deaths[0] > self._restarts.within_s * 1_000_000:
            self._deaths.popleft()
        if code == ExitCode.USAGE or len(self._deaths) >= self._restarts.deaths:
            often = (
                f"{len(self._deaths)} times within {self._restarts.within_s:g} s"
                if code != ExitCode.USAGE
                else "at once"
            )
            words = "\n  ".join(self._last_words)
            raise GivenUpError(f"{self.spec.name} ended {often} ({_how(code)}). Its last words:\n  {words}")

    def _signal(self, one: signal.Signals, *, whole_session: bool) -> None:
        pid = self.pid
        if pid is None:
            return
        with suppress(ProcessLookupError):
            if whole_session:
                os.killpg(pid, one)
            else:
                os.kill(pid, one)


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"

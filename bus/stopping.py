"""How a process is told to stop: first politely, then at once.

Polite (SIGTERM, SIGINT, an order, a lost parent): take nothing new, finish what runs, say goodbye. A second signal:
kill what runs and leave. The signal object is handed down; nothing else in the process listens to signals.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from bus.instance import is_alive, started_us

PARENT_POLL_S = 1.0


class StopSignal:
    """The wish that a process ends; it only ever grows: nothing → drain → at once."""

    def __init__(self) -> None:
        self._draining = asyncio.Event()
        self._at_once = asyncio.Event()
        self._reason = ""

    @property
    def is_draining(self) -> bool:
        """True once the process shall end, in whichever way."""
        return self._draining.is_set()

    @property
    def is_at_once(self) -> bool:
        """True once nothing shall be waited for."""
        return self._at_once.is_set()

    @property
    def reason(self) -> str:
        """Why, in words: the first reason that was given."""
        return self._reason

    def drain(self, reason: str) -> None:
        """Ask to finish what runs and leave."""
        self._reason = self._reason or reason
        self._draining.set()

    def at_once(self, reason: str) -> None:
        """Ask to kill what runs and leave."""
        self.drain(reason)
        self._at_once.set()

    def insist(self, reason: str) -> None:
        """What a signal does: drain, and at once when asked again."""
        if self.is_draining:
            self.at_once(reason)
        else:
            self.drain(reason)

    async def wait_draining(self) -> None:
        """Returns once the process shall end, in whichever way."""
        await self._draining.wait()

    async def wait_at_once(self) -> None:
        """Returns once nothing shall be waited for."""
        await self._at_once.wait()


@contextmanager
def signals_to(stop: StopSignal) -> Iterator[None]:
    """Within this, SIGTERM and SIGINT insist on stopping (main thread, running loop)."""
    loop = asyncio.get_running_loop()
    caught = (signal.SIGTERM, signal.SIGINT)
    for one in caught:
        loop.add_signal_handler(one, stop.insist, f"received {one.name}")
    try:
        yield
    finally:
        for one in caught:
            loop.remove_signal_handler(one)


@asynccontextmanager
async def parent_watched(
    pid: int | None, stop: StopSignal, *, poll_s: float = PARENT_POLL_S
) -> AsyncIterator[None]:
    """Within this, the process drains when the process `pid` is gone; None watches nothing."""
    if pid is None:
        yield
        return
    watch = asyncio.create_task(_watch(pid, stop, poll_s))
    try:
        yield
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch


async def _watch(pid: int, stop: StopSignal, poll_s: float) -> None:
    start_us = started_us(pid)
    while start_us is not None and is_alive(pid, start_us):
        with suppress(TimeoutError):
            async with asyncio.timeout(poll_s):
                await stop.wait_draining()
                return
    stop.drain(f"the process that started this one ({pid}) is gone")

"""Watching a task until it is over: a live view on a terminal, plain lines in a log."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from rich.console import Console
from rich.live import Live

from rolecall.client.following import Feed, follow
from rolecall.client.phrases import duration, short
from rolecall.client.progress_view import Seen, render
from rolecall.client.reading import Glimpse
from schemas.clock import now_us
from schemas.errors import RolecallError, SettingsError
from schemas.task import TaskProgress

# Often enough for a clock that counts seconds.
REFRESH_S = 0.25
# The journal knows of new work as soon as it is accepted; reading it costs milliseconds.
LOOK_AROUND_S = 0.5


class StoppedWatchingError(RolecallError):
    """The user interrupted, and this ends the watching."""


class Interrupts:
    """What Ctrl-C does: each press takes the next answer; the last answer ends the watching."""

    def __init__(self, *answers: Callable[[], Awaitable[None]]) -> None:
        self._answers = list(answers)
        self._pressed: asyncio.Queue[None] = asyncio.Queue()

    @asynccontextmanager
    async def caught(self) -> AsyncIterator["asyncio.Task[None]"]:
        """Within this, Ctrl-C and SIGTERM are answered; the task ends when the last answer was given."""
        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, self._pressed.put_nowait, None)
        answering = asyncio.create_task(self._answer())
        try:
            yield answering
        finally:
            answering.cancel()
            for one in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(one)

    async def _answer(self) -> None:
        for answer in self._answers:
            await self._pressed.get()
            await answer()


async def watch(
    task: str,
    feed: Feed | None,
    glimpse: Glimpse | None,
    *,
    recipe: str,
    console: Console,
    interrupts: Interrupts,
    is_served: Callable[[], bool] = lambda: True,
) -> TaskProgress:
    """Show a task until it is over; returns the last picture. Raises StoppedWatchingError when interrupted to the end.

    `glimpse` looks into the journal, where there is one on this machine. Raises SettingsError when nothing works on
    the task any more (`is_served`).
    """
    seen = Seen(recipe=recipe, started_us=now_us(), heard_us=now_us())
    async with interrupts.caught() as interrupted:
        watching = asyncio.create_task(_watch(task, feed, glimpse, seen, console, is_served))
        await asyncio.wait({watching, interrupted}, return_when=asyncio.FIRST_COMPLETED)
        if not watching.done():
            watching.cancel()
            await asyncio.wait({watching})
            raise StoppedWatchingError("Stopped watching.")
        return await watching


async def _watch(
    task: str,
    feed: Feed | None,
    glimpse: Glimpse | None,
    seen: Seen,
    console: Console,
    is_served: Callable[[], bool],
) -> TaskProgress:
    read = None if glimpse is None else lambda: glimpse.picture(task)
    async with AsyncExitStack() as stack:
        if console.is_terminal:
            live = stack.enter_context(Live(console=console, auto_refresh=False, transient=True))
            clock = asyncio.create_task(_refresh(live, seen))
            stack.callback(clock.cancel)
            if glimpse is not None:
                crowd = asyncio.create_task(_look_around(glimpse, seen))
                stack.callback(crowd.cancel)
        async for picture in follow(feed, read):
            if picture is None and not is_served():
                raise SettingsError(
                    "The processes that worked on the task are gone.",
                    suggestion=f"`rolecall up` takes task {short(task)} up again; their logs say why they ended.",
                )
            said = seen.news(picture, at_us=now_us()) if picture is not None else []
            if not console.is_terminal:
                for one in said:
                    passed = duration((now_us() - seen.started_us) / 1e6)
                    console.print(f"{passed:>10}  {one}", soft_wrap=True)
    if seen.latest is None:
        raise StoppedWatchingError("The task was never seen.")
    return seen.latest


async def _refresh(live: Live, seen: Seen) -> None:
    while True:
        live.update(render(seen, now_us=now_us()), refresh=True)
        await asyncio.sleep(REFRESH_S)


async def _look_around(glimpse: Glimpse, seen: Seen) -> None:
    while True:
        seen.workers = await asyncio.to_thread(glimpse.workers)
        await asyncio.sleep(LOOK_AROUND_S)

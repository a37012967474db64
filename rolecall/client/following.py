"""Following a task: its pictures as they come, from the feed while that speaks, from the journal when it is silent.

Pictures on the feed may be lost, so the journal has the last word; a client on another machine has the feed alone.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, suppress

from bus.api import Bus, Delivery, Settlement
from schemas.errors import RolecallError
from schemas.messages import TaskProgressed
from schemas.task import TaskProgress

# The supervisor shows a new picture at most every 0.2 s; this long without one, the journal is asked.
SILENCE_S = 1.0

ReadPicture = Callable[[], TaskProgress | None]


class Feed:
    """The pictures of one task as they arrive; subscribed before the task is submitted, none is missed."""

    def __init__(self, bus: Bus, task: str) -> None:
        self._bus = bus
        self._task = task
        self._pictures: asyncio.Queue[TaskProgress] = asyncio.Queue()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Feed":
        consumer = await self._bus.consume_feed(self._task, self._take)
        self._stack.push_async_callback(consumer.cancel)
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(RolecallError):  # the line is down: there is nothing left to cancel
            await self._stack.aclose()

    async def next(self, limit_s: float) -> TaskProgress | None:
        """The next picture, or None if none comes within the limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                return await self._pictures.get()
        return None

    async def _take(self, delivery: Delivery) -> None:
        if delivery.fault is None and isinstance(delivery.body, TaskProgressed):
            self._pictures.put_nowait(delivery.body.progress)
        await self._bus.settle(delivery, Settlement.ACK)


async def follow(
    feed: Feed | None, read: ReadPicture | None, *, silence_s: float = SILENCE_S
) -> AsyncGenerator[TaskProgress | None]:
    """The pictures of a task until it is over; None says that nothing new came for a while.

    `read` asks the journal (it may block, and gives None for a task that is not in it yet).
    """
    last: TaskProgress | None = None
    while last is None or not last.status.is_final:
        picture = await feed.next(silence_s) if feed is not None else None
        if picture is None and read is not None:
            picture = await asyncio.to_thread(read)
            if feed is None and (picture is None or picture == last):
                await asyncio.sleep(silence_s)
        if picture is not None and (last is None or picture.at > last.at):
            last = picture
            yield picture
        else:
            yield None

"""Following a task: the feed while it speaks, the journal when it is silent."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from bus.api import Exchange, Outgoing
from bus.memory import MemoryBus
from bus.memory_broker import MemoryBroker
from rolecall.client.following import Feed, follow
from schemas.clock import new_id
from schemas.envelope import Envelope, Sender
from schemas.messages import TaskProgressed
from schemas.task import TaskProgress
from schemas.words import TaskStatus

TASK = "0193fa2b-1c3d-7abc-8def-0123456789ab"
LIMIT_S = 10.0


def picture(at: int, status: TaskStatus = TaskStatus.WORKING) -> TaskProgress:
    return TaskProgress(task=TASK, status=status, phase="landing", sentence=f"at {at}", at=at)


async def show(bus: MemoryBus, progress: TaskProgress) -> None:
    envelope = Envelope(
        environment=bus.environment,
        message_id=new_id(),
        correlation_id=progress.task,
        kind="task.progressed",
        sender=Sender(role="supervisor", instance="s-1", version="0"),
        created_at=1,
        body=TaskProgressed(progress=progress).model_dump(mode="json"),
    )
    await bus.publish(Outgoing(Exchange.FEED, progress.task, envelope))


async def seen(feed: Feed | None, read: Callable[[], TaskProgress | None] | None) -> list[int]:
    async with asyncio.timeout(LIMIT_S):
        return [one.at async for one in follow(feed, read, silence_s=0.01) if one is not None]


async def started_bus() -> MemoryBus:
    bus = MemoryBus(MemoryBroker(), "test")
    await bus.start()
    return bus


async def test_pictures_come_from_the_feed_until_the_task_is_over() -> None:
    bus = await started_bus()
    async with Feed(bus, TASK) as feed:
        for at in (1, 2):
            await show(bus, picture(at))
        await show(bus, picture(3, TaskStatus.COMPLETED))

        assert await seen(feed, None) == [1, 2, 3]
    await bus.close()


async def test_a_silent_feed_is_made_up_for_by_the_journal() -> None:
    bus = await started_bus()
    recorded = iter([None, picture(1), picture(1), picture(5, TaskStatus.FAILED)])
    async with Feed(bus, TASK) as feed:
        assert await seen(feed, lambda: next(recorded)) == [1, 5]
    await bus.close()


async def test_a_picture_that_is_older_than_the_last_is_passed_over() -> None:
    bus = await started_bus()
    async with Feed(bus, TASK) as feed:
        for at in (4, 2):
            await show(bus, picture(at))
        await show(bus, picture(5, TaskStatus.CANCELED))

        assert await seen(feed, None) == [4, 5]
    await bus.close()


async def test_without_a_bus_the_journal_alone_tells_the_story() -> None:
    recorded = iter([picture(1), picture(2, TaskStatus.COMPLETED)])

    assert await seen(None, lambda: next(recorded)) == [1, 2]


async def test_silence_is_told_so_that_the_watcher_can_say_it() -> None:
    async with asyncio.timeout(LIMIT_S), aclosing(follow(None, lambda: None, silence_s=0.01)) as pictures:
        assert await anext(pictures) is None

"""One delivery at a time, in order, and none is left hanging."""

import asyncio

import pytest

from bus.api import Delivery, PublishTimeoutError, Settlement
from bus.dispatch import Dispatcher
from schemas.errors import RolecallError


def delivery(name: str) -> Delivery:
    return Delivery(envelope=None, raw=b"", fault=None, queue=name, key="", redelivered=False, received_at=0)


class Settled:
    """Takes note of what was settled how."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Settlement]] = []
        self.fails = False

    async def __call__(self, delivery: Delivery, settlement: Settlement, reason: str) -> None:
        self.seen.append((delivery.queue, settlement))
        if self.fails:
            raise RolecallError("no broker")


async def test_callbacks_run_one_at_a_time_in_order_of_arrival() -> None:
    running, log, done = 0, [], asyncio.Event()

    async def callback(delivery: Delivery) -> None:
        nonlocal running
        running += 1
        await asyncio.sleep(0)
        log.append((delivery.queue, running))
        running -= 1
        if len(log) == 3:
            done.set()

    dispatcher = Dispatcher("test", callback, Settled())
    for name in "abc":
        dispatcher.put(delivery(name))

    async with asyncio.timeout(5):
        await done.wait()
    dispatcher.stop()
    await dispatcher.join()
    assert log == [("a", 1), ("b", 1), ("c", 1)]


@pytest.mark.parametrize(
    ("error", "settlement"),
    [(ValueError("odd"), Settlement.PARK), (PublishTimeoutError("slow"), Settlement.RETRY)],
)
async def test_what_a_callback_fails_on_is_settled(error: Exception, settlement: Settlement) -> None:
    settled, done = Settled(), asyncio.Event()

    async def callback(delivery: Delivery) -> None:
        if delivery.queue == "last":
            done.set()
            return
        raise error

    dispatcher = Dispatcher("test", callback, settled)
    settled.fails = True
    dispatcher.put(delivery("bad"))
    dispatcher.put(delivery("last"))

    async with asyncio.timeout(5):
        await done.wait()
    dispatcher.stop()
    await dispatcher.join()
    assert settled.seen == [("bad", settlement)]


async def test_stopping_gives_back_what_was_not_seen_and_lets_the_callback_finish() -> None:
    entered, leave, log = asyncio.Event(), asyncio.Event(), []

    async def callback(delivery: Delivery) -> None:
        entered.set()
        await leave.wait()
        log.append(delivery.queue)

    dispatcher = Dispatcher("test", callback, Settled())
    for name in "abc":
        dispatcher.put(delivery(name))
    await entered.wait()

    unseen = dispatcher.stop()
    leave.set()
    await dispatcher.join()

    assert [one.queue for one in unseen] == ["b", "c"]
    assert log == ["a"]


async def test_a_callback_may_stop_its_own_dispatcher() -> None:
    done = asyncio.Event()

    async def callback(delivery: Delivery) -> None:
        dispatcher.stop()
        await dispatcher.join()
        done.set()

    dispatcher = Dispatcher("test", callback, Settled())
    dispatcher.put(delivery("a"))

    async with asyncio.timeout(5):
        await done.wait()
    await dispatcher.join()

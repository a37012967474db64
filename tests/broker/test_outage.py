"""The broker dies, freezes and comes back, under traffic: nothing that was confirmed is lost, and all goes on."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from bus.api import Bus, Outgoing, PublishTimeoutError
from rolecall.processes.private_node import PrivateNode, start_node
from tests.broker.worlds import POOL, Inbox, RabbitWorld, event, until, work

# Each kills and starts a node, which takes its time on a busy machine.
pytestmark = pytest.mark.timeout(180)


async def test_a_killed_broker_loses_nothing_confirmed_and_everything_resumes(
    fragile: RabbitWorld, fragile_node: PrivateNode, fragile_folder: Path
) -> None:
    bus = await fragile.bus(publish_limit_s=60.0)
    await bus.declare_pool(POOL)
    events, jobs = Inbox(bus), Inbox(bus)
    reconnects: list[bool] = []

    async def on_reconnect() -> None:
        reconnects.append(event_consumer.is_active and work_consumer.is_active)

    bus.add_reconnect_listener(on_reconnect)
    event_consumer = await bus.consume(fragile.topology.supervisor, events, prefetch=50)
    work_consumer = await bus.consume(fragile.topology.work(POOL), jobs, prefetch=1)
    confirmed: set[str] = set()
    stop = asyncio.Event()

    async def publish_all_the_time(start: int) -> None:
        number = start
        while not stop.is_set():
            number += 10
            await bus.publish(event(fragile, str(number)))
            confirmed.add(str(number))

    publishers = [asyncio.create_task(publish_all_the_time(start)) for start in range(10)]
    await until(lambda: len(confirmed) > 100)

    await asyncio.to_thread(fragile_node.kill)
    before = len(confirmed)
    node = await asyncio.to_thread(start_node, fragile_folder)

    await until(lambda: len(confirmed) > before + 100, 30)
    stop.set()
    await asyncio.gather(*publishers)
    await until(lambda: confirmed <= set(events.tokens), 30)
    await bus.publish(work(fragile, "after"))
    await jobs.wait(1)
    assert node.url == fragile_node.url
    assert reconnects == [True]


async def test_a_publish_waits_for_the_broker_up_to_its_limit(
    fragile: RabbitWorld, fragile_node: PrivateNode, fragile_folder: Path
) -> None:
    patient, hasty = await fragile.bus(publish_limit_s=60.0), await fragile.bus(publish_limit_s=0.2)

    await asyncio.to_thread(fragile_node.kill)
    await until(lambda: not hasty.is_connected)
    waiting = asyncio.create_task(patient.publish(event(fragile, "patient")))

    with pytest.raises(PublishTimeoutError, match=r"within 0\.2 s.*may have landed"):
        await hasty.publish(event(fragile, "hasty"))
    await asyncio.to_thread(start_node, fragile_folder)
    await waiting


async def test_a_publish_that_timed_out_lands_later_and_its_repetition_too(
    fragile: RabbitWorld, fragile_node: PrivateNode
) -> None:
    bus = await fragile.bus(publish_limit_s=0.5)
    inbox = Inbox(bus)
    await bus.consume(fragile.topology.supervisor, inbox, prefetch=10)
    sent = event(fragile, "slow")
    await bus.publish(event(fragile, "opens the channel"))

    os.kill(fragile_node.pid, signal.SIGSTOP)
    try:
        with pytest.raises(PublishTimeoutError):
            await bus.publish(sent)
    finally:
        os.kill(fragile_node.pid, signal.SIGCONT)
    await _publish_when_it_is_back(bus, sent)

    _, *twice = await inbox.wait(3)
    assert [delivery.envelope for delivery in twice] == [sent.envelope, sent.envelope]


async def test_unsettled_work_comes_again_after_the_broker_died(
    fragile: RabbitWorld, fragile_node: PrivateNode, fragile_folder: Path
) -> None:
    bus = await fragile.bus(publish_limit_s=60.0)
    await bus.declare_pool(POOL)
    # A broker that is killed within half a second of a declaration forgets the queue declared last (3.10).
    await bus.declare_pool("declared-last")
    inbox = Inbox(bus, settlement=None)
    await bus.consume(fragile.topology.work(POOL), inbox, prefetch=5)
    await bus.publish_many([work(fragile, "a"), work(fragile, "b")])
    first = await inbox.wait(2)

    await asyncio.to_thread(fragile_node.kill)
    await asyncio.to_thread(start_node, fragile_folder)

    await inbox.wait(4, 30)
    await bus.settle_many(first)
    await bus.settle_many(inbox.seen[2:])
    assert sorted(inbox.tokens) == ["a", "a", "b", "b"]
    assert await fragile.depth(fragile.topology.work(POOL)) == 0


async def test_a_memory_alarm_holds_publishes_back_but_not_acknowledgements(
    fragile: RabbitWorld, fragile_node: PrivateNode
) -> None:
    bus = await fragile.bus(publish_limit_s=1.0)
    await bus.declare_pool(POOL)
    await bus.publish_many([work(fragile, str(number)) for number in range(20)])
    inbox = Inbox(bus)

    await _ctl(fragile_node, "set_vm_memory_high_watermark", "0.00001")
    try:
        with pytest.raises(PublishTimeoutError):
            await _publish_until_refused(bus, fragile)
        await bus.consume(fragile.topology.work(POOL), inbox, prefetch=1)
        await inbox.wait(20)
    finally:
        await _ctl(fragile_node, "set_vm_memory_high_watermark", "0.4")

    await _publish_when_it_is_back(bus, event(fragile, "after"))


async def _publish_until_refused(bus: Bus, world: RabbitWorld) -> None:
    # The alarm comes a moment after the command that causes it.
    async with asyncio.timeout(30):
        while True:
            await bus.publish(event(world, "held back"))


async def _publish_when_it_is_back(bus: Bus, outgoing: Outgoing) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await bus.publish(outgoing)
            except PublishTimeoutError:
                continue
            return


async def _ctl(node: PrivateNode, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(str(node.rabbitmqctl), "-q", *arguments)
    assert await process.wait() == 0

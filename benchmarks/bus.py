"""What our bus costs over bare aio-pika: the same broker, kind of queue, confirms, and messages under way.

    python -m benchmarks.bus [--messages N] [--rounds N] [--broker URL]

One message is a 1 KiB envelope. Ours: encode, validate, publish, confirm, receive, decode, validate, acknowledge. Bare:
publish bytes, confirm, receive, acknowledge, with aio-pika's own idioms. Rounds alternate, the table shows medians; the
promise is the ratio, for the machine's other work hits both.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from rich.console import Console
from rich.table import Table

from benchmarks.endings import unwind_on_sigterm
from bus import codec
from bus.amqp import AmqpBus
from bus.api import Delivery, Exchange, Outgoing, Settlement
from bus.topology import Topology
from rolecall.processes.private_node import start_node
from schemas.clock import new_id, now_us
from schemas.envelope import Envelope, Sender

IN_FLIGHT = 200
PREFETCH = 200
PROMISED_RATIO = 0.6

# Publishes, consumes and the whole, in messages a second.
Rates = tuple[float, float, float]


async def ours(url: str, messages: int) -> Rates:
    """Publish and consume over AmqpBus."""
    environment = f"bench-{new_id()}"
    queue = Topology(environment).work("bench")
    bus = AmqpBus(environment, url, instance="bench")
    await bus.start()
    await bus.declare_pool("bench")
    numbers = iter(range(messages))
    done = asyncio.Event()
    received = 0

    async def publish() -> None:
        for _ in numbers:
            await bus.publish(Outgoing(Exchange.WORK, "bench", envelope(environment)))

    async def receive(delivery: Delivery) -> None:
        nonlocal received
        if delivery.fault is not None:
            raise ValueError(delivery.fault)
        await bus.settle(delivery, Settlement.ACK)
        received += 1
        if received == messages:
            done.set()

    async def consume() -> None:
        await bus.consume(queue, receive, prefetch=PREFETCH)
        await done.wait()

    rates = await timed(publish, consume, messages)
    await bus.close()
    await forget(url, environment)
    return rates


async def bare(url: str, messages: int) -> Rates:
    """Publish and consume the same bytes with aio-pika alone."""
    name = f"bare-{new_id()}"
    connection = await aio_pika.connect(url)
    channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
    exchange = await channel.declare_exchange(name, "topic", durable=True)
    arguments: dict[str, Any] = dict(Topology("bench").pool("bench").queues[0].arguments)
    queue = await channel.declare_queue(name, durable=True, arguments=arguments)
    await queue.bind(exchange, "bench")
    raw = codec.encode(envelope("bench"))
    numbers = iter(range(messages))
    done = asyncio.Event()
    received = 0

    async def publish() -> None:
        for _ in numbers:
            message = aio_pika.Message(raw, delivery_mode=2, message_id=new_id())
            await exchange.publish(message, "bench", mandatory=True)

    async def receive(message: AbstractIncomingMessage) -> None:
        nonlocal received
        await message.ack()
        received += 1
        if received == messages:
            done.set()

    async def consume() -> None:
        consuming = await aio_pika.connect(url)
        other = await consuming.channel()
        await other.set_qos(PREFETCH)
        await (await other.get_queue(name)).consume(receive)
        await done.wait()
        await consuming.close()

    rates = await timed(publish, consume, messages)
    await queue.delete(if_unused=False, if_empty=False)
    await channel.exchange_delete(name)
    await connection.close()
    return rates


async def timed(
    publish: Callable[[], Awaitable[None]], consume: Callable[[], Awaitable[None]], messages: int
) -> Rates:
    """All publishes with 200 under way, then all consumes."""
    start = time.perf_counter()
    await asyncio.gather(*(publish() for _ in range(IN_FLIGHT)))
    middle = time.perf_counter()
    await consume()
    end = time.perf_counter()
    return messages / (middle - start), messages / (end - middle), messages / (end - start)


async def forget(url: str, environment: str) -> None:
    """Delete what a round has declared."""
    topology = Topology(environment)
    async with await aio_pika.connect(url) as connection, connection.channel() as channel:
        for queue in (*topology.core.queues, *topology.pool("bench").queues):
            await channel.queue_delete(queue.name)
        for exchange in topology.core.exchanges:
            await channel.exchange_delete(exchange.name)


def envelope(environment: str) -> Envelope:
    """A work message of 1 KiB."""
    return Envelope(
        environment=environment,
        message_id=new_id(),
        correlation_id=new_id(),
        kind="action.requested",
        sender=Sender(role="supervisor", instance="host-1-1", version="0.1.0"),
        created_at=now_us(),
        ttl_ms=300_000,
        body={
            "action_id": "a" * 64,
            "contract": "rewrite.pattern@1",
            "step": "utcnow/3",
            "action": bytes(380),
            "grant": bytes(120),
            "signature": bytes(64),
        },
    )


@contextmanager
def broker(url: str | None) -> Iterator[str]:
    """The broker that was named, or a private node for the time being."""
    if url is not None:
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="rolecall-bench-") as folder:
        node = start_node(Path(folder))
        try:
            yield node.url
        finally:
            node.stop()


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; exit code 1 if the promise is not kept."""
    unwind_on_sigterm()
    options = argparse.ArgumentParser(prog="python -m benchmarks.bus")
    options.add_argument("--messages", type=int, default=4_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--broker", metavar="URL")
    given = options.parse_args(argv)
    with broker(given.broker) as url:
        asyncio.run(ours(url, 200))  # warms the broker and the caches of both
        rounds = [
            (asyncio.run(ours(url, given.messages)), asyncio.run(bare(url, given.messages)))
            for _ in range(given.rounds)
        ]
    table = Table(
        "",
        "ours /s",
        "bare aio-pika /s",
        "ratio",
        title=f"1 KiB, {IN_FLIGHT} in flight, median of {given.rounds}",
    )
    ratio = 0.0
    for place, name in enumerate(("publish + confirm", "consume + ack", "both")):
        mine = statistics.median(one[place] for one, _ in rounds)
        theirs = statistics.median(other[place] for _, other in rounds)
        ratio = statistics.median(one[place] / other[place] for one, other in rounds)
        table.add_row(name, f"{mine:,.0f}", f"{theirs:,.0f}", f"{ratio:.2f}")
    Console().print(table)
    Console().print(f"Promised: both at {PROMISED_RATIO:g} or more of bare aio-pika; measured {ratio:.2f}.")
    return 0 if ratio >= PROMISED_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())

"""The rival of our control plane: the least loop that keeps its rules, with aio-pika and sqlite3 alone.

One supervisor reads a group of messages, writes them and what follows in one transaction (WAL, synchronous=FULL),
publishes with confirms, and acknowledges the group; two executor processes answer each piece of work with "accepted",
acknowledge it, and answer with "handoff". Quorum queues, persistent and mandatory publishes. No schemas, no saga, no
grants, no leases, no log: what it does not do is what ours costs.
"""

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aio_pika
import msgpack
from aio_pika.abc import AbstractExchange, AbstractIncomingMessage, AbstractQueue

from schemas.clock import new_id

WORK, SUPERVISOR, EXCHANGE = "bare-loop.work", "bare-loop.supervisor", "bare-loop"
GROUP = 64
PADDING = bytes(600)  # an action's message is about this large


@dataclass(frozen=True, slots=True)
class Loop:
    """A connected supervisor with its executors running."""

    exchange: AbstractExchange
    inbox: "asyncio.Queue[AbstractIncomingMessage]"
    journal: sqlite3.Connection


def measure(url: str, folder: Path, actions: int, in_flight: int) -> tuple[float, float]:
    """Actions a second with so many under way, and the median milliseconds of one at a time."""
    return asyncio.run(_measure(url, folder, actions, in_flight))


async def _measure(url: str, folder: Path, actions: int, in_flight: int) -> tuple[float, float]:
    async with _running(url, folder) as loop:
        await _drive(loop, 200, in_flight)  # warm
        began = time.perf_counter()
        await _drive(loop, actions, in_flight)
        rate = actions / (time.perf_counter() - began)
        single = sorted([took for _ in range(50) for took in await _one_later(loop)])
    return rate, single[len(single) // 2] * 1e3


async def _one_later(loop: Loop) -> list[float]:
    """One action on a loop that had nothing to do for a while, like ours when it is measured."""
    await asyncio.sleep(0.1)
    return await _drive(loop, 1, 1)


async def _drive(loop: Loop, actions: int, in_flight: int) -> list[float]:
    """Run so many actions; seconds from dispatch to handoff of each."""
    waiting = actions
    started: dict[str, float] = {}
    took: list[float] = []
    first = [new_id() for _ in range(min(in_flight, waiting))]
    waiting -= len(first)
    started |= dict.fromkeys(first, time.perf_counter())
    await _commit_and_publish(loop, [], first)
    while len(took) < actions:
        group = [await loop.inbox.get()]
        while len(group) < GROUP and not loop.inbox.empty():
            group.append(loop.inbox.get_nowait())
        bodies = [msgpack.unpackb(one.body) for one in group]
        ended = [body["action"] for body in bodies if body["kind"] == "handoff"]
        took += [time.perf_counter() - started[action] for action in ended]
        following = [new_id() for _ in range(min(len(ended), waiting))]
        waiting -= len(following)
        started |= dict.fromkeys(following, time.perf_counter())
        await _commit_and_publish(loop, bodies, following)
        await group[-1].ack(multiple=True)
    return took


async def _commit_and_publish(loop: Loop, bodies: list[dict[str, str]], actions: list[str]) -> None:
    inbox = [(body["id"], body["kind"], body["action"]) for body in bodies]
    outbox = [(new_id(), action) for action in actions]
    with loop.journal:
        loop.journal.executemany("insert into inbox values (?, ?, ?)", inbox)
        loop.journal.executemany("insert into outbox values (?, ?, 0)", outbox)
    await asyncio.gather(*(_send(loop.exchange, WORK, "work", action, name) for name, action in outbox))
    with loop.journal:
        loop.journal.executemany("update outbox set sent = 1 where id = ?", [(name,) for name, _ in outbox])


async def _send(exchange: AbstractExchange, key: str, kind: str, action: str, name: str = "") -> None:
    body = {"id": name or new_id(), "kind": kind, "action": action, "padding": PADDING}
    message = aio_pika.Message(msgpack.packb(body), delivery_mode=2, message_id=new_id())
    await exchange.publish(message, key, mandatory=True)


@asynccontextmanager
async def _running(url: str, folder: Path) -> AsyncIterator[Loop]:
    journal = sqlite3.connect(folder / "bare.sqlite")
    journal.executescript(
        "pragma journal_mode = wal; pragma synchronous = full;"
        "create table inbox (id text primary key, kind text, action text);"
        "create table outbox (id text primary key, action text, sent integer);"
    )
    executors = []
    async with await aio_pika.connect(url) as publishing, await aio_pika.connect(url) as consuming:
        exchange, queue, _ = await _declared(publishing)
        inbox: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
        channel = await consuming.channel()
        await channel.set_qos(256)
        await (await channel.get_queue(queue.name)).consume(inbox.put)
        command = [sys.executable, "-m", "benchmarks.bare_loop", url]
        executors = [subprocess.Popen(command) for _ in range(2)]  # noqa: ASYNC220 - before anything is timed
        try:
            yield Loop(exchange, inbox, journal)
        finally:
            for one in executors:
                one.terminate()
            for one in executors:
                one.wait(10)
            journal.close()


async def _declared(
    connection: aio_pika.abc.AbstractConnection,
) -> tuple[AbstractExchange, AbstractQueue, AbstractQueue]:
    channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
    exchange = await channel.declare_exchange(EXCHANGE, "topic", durable=True)
    queues = []
    for name in (SUPERVISOR, WORK):
        queue = await channel.declare_queue(name, durable=True, arguments={"x-queue-type": "quorum"})
        await queue.bind(exchange, name)
        queues.append(queue)
    return exchange, queues[0], queues[1]


async def _execute(url: str) -> None:
    """An executor: accepted, ack, handoff, for ever."""
    async with await aio_pika.connect(url) as publishing, await aio_pika.connect(url) as consuming:
        exchange, _, queue = await _declared(publishing)

        async def work(message: AbstractIncomingMessage) -> None:
            action = msgpack.unpackb(message.body)["action"]
            await _send(exchange, SUPERVISOR, "accepted", action)
            await message.ack()
            await _send(exchange, SUPERVISOR, "handoff", action)

        channel = await consuming.channel()
        await channel.set_qos(32)
        await (await channel.get_queue(queue.name)).consume(work)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_execute(sys.argv[1]))

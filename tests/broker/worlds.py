"""What the suite does behind the bus's back: raw messages, deleted queues, cut connections; on either transport."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import aio_pika
from aio_pika.abc import AbstractConnection

from bus.amqp import AmqpBus
from bus.api import Bus, Delivery, Exchange, Outgoing, Settlement
from bus.memory import MemoryBus
from bus.memory_broker import MemoryBroker, Stored
from bus.topology import Topology
from schemas.clock import new_id, now_us
from schemas.envelope import Envelope, Sender

LIMIT_S = 15.0
POOL = "executor"


async def until(fact: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(limit_s):
        while not fact():  # noqa: ASYNC110  # facts of a broker come without an event
            await asyncio.sleep(0.005)


class Inbox:
    """A callback that keeps what it gets, and settles it if told to."""

    def __init__(self, bus: Bus, settlement: Settlement | None = Settlement.ACK, reason: str = "") -> None:
        self.seen: list[Delivery] = []
        self._bus = bus
        self._settlement = settlement
        self._reason = reason
        self._arrived = asyncio.Condition()

    async def __call__(self, delivery: Delivery) -> None:
        if self._settlement is not None:
            await self._bus.settle(delivery, self._settlement, self._reason)
        self.seen.append(delivery)
        async with self._arrived:
            self._arrived.notify_all()

    async def wait(self, count: int, limit_s: float = LIMIT_S) -> list[Delivery]:
        """The first `count` deliveries, once they are there."""
        async with asyncio.timeout(limit_s), self._arrived:
            await self._arrived.wait_for(lambda: len(self.seen) >= count)
        return self.seen[:count]

    @property
    def tokens(self) -> list[str]:
        """The tokens of the probes that came, in order."""
        return [delivery.envelope.body["token"] for delivery in self.seen if delivery.envelope is not None]


class World(Protocol):
    """One broker, one environment."""

    environment: str
    topology: Topology

    async def bus(self, instance: str = "host-1-1", **options: Any) -> Bus: ...
    async def publish_raw(
        self, exchange: Exchange, key: str, raw: bytes, headers: dict[str, Any] | None = None
    ) -> None: ...
    async def delete_queue(self, queue: str) -> None: ...
    async def depth(self, queue: str) -> int: ...
    async def cut(self, bus: Bus) -> None: ...
    async def close(self) -> None: ...


class MemoryWorld:
    """A broker in this process."""

    def __init__(self) -> None:
        self.environment = f"test-{new_id()}"
        self.topology = Topology(self.environment)
        self.broker = MemoryBroker()
        self._buses: list[Bus] = []

    async def bus(self, instance: str = "host-1-1", **options: Any) -> Bus:
        bus = MemoryBus(self.broker, self.environment, instance=instance, **options)
        await bus.start()
        self._buses.append(bus)
        return bus

    async def publish_raw(
        self, exchange: Exchange, key: str, raw: bytes, headers: dict[str, Any] | None = None
    ) -> None:
        self.broker.publish(self.topology.exchange(exchange), Stored(raw, key, headers=headers or {}))

    async def delete_queue(self, queue: str) -> None:
        self.broker.delete(queue)

    async def depth(self, queue: str) -> int:
        return len(self.broker.queues[queue].ready)

    async def cut(self, bus: Bus) -> None:
        self.broker.stop()
        self.broker.start()

    async def close(self) -> None:
        for bus in self._buses:
            await bus.close()


class RabbitWorld:
    """An environment on a RabbitMQ node; leaves no queues behind."""

    def __init__(self, url: str) -> None:
        self.environment = f"test-{new_id()}"
        self.topology = Topology(self.environment)
        self.url = url
        self._buses: list[Bus] = []
        self._admin: AbstractConnection | None = None

    async def bus(self, instance: str = "host-1-1", **options: Any) -> Bus:
        bus = AmqpBus(self.environment, self.url, instance=instance, **options)
        await bus.start()
        self._buses.append(bus)
        return bus

    async def admin(self) -> AbstractConnection:
        """A plain connection beside the buses."""
        if self._admin is None or self._admin.is_closed:
            self._admin = await aio_pika.connect(self.url)
        return self._admin

    async def publish_raw(
        self, exchange: Exchange, key: str, raw: bytes, headers: dict[str, Any] | None = None
    ) -> None:
        async with (await self.admin()).channel() as channel:
            to = await channel.get_exchange(self.topology.exchange(exchange), ensure=False)
            await to.publish(aio_pika.Message(raw, headers=headers, delivery_mode=2), key)

    async def delete_queue(self, queue: str) -> None:
        async with (await self.admin()).channel() as channel:
            await channel.queue_delete(queue)

    async def depth(self, queue: str) -> int:
        async with (await self.admin()).channel() as channel:
            found = await channel.declare_queue(queue, passive=True)
            return found.declaration_result.message_count or 0

    async def cut(self, bus: Bus) -> None:
        """Lose both connections without a goodbye."""
        assert isinstance(bus, AmqpBus)
        session = await bus.ready()
        for connection in (session._publishing, session._consuming):
            assert connection.transport is not None
            transport = _socket_of(connection.transport.connection)
            transport.abort()
        await session.lost.wait()

    async def close(self) -> None:
        for bus in self._buses:
            await bus.close()
        core = self.topology.core
        queues = [*(queue.name for queue in core.queues), self.topology.work(POOL)]
        admin = await self.admin()
        for queue in queues:
            with suppress(aio_pika.exceptions.ChannelClosed):
                async with admin.channel() as channel:
                    await channel.queue_delete(queue)
        async with admin.channel() as channel:
            for exchange in core.exchanges:
                await channel.exchange_delete(exchange.name)
        await admin.close()


def _socket_of(connection: Any) -> asyncio.WriteTransport:
    # The library keeps its socket in the frame of its writer task only.
    frame = connection._writer_task.task.get_coro().cr_frame
    transport: asyncio.WriteTransport = frame.f_locals["writer"].transport
    return transport


def probe(world: World, token: str = "t", **fields: Any) -> Envelope:
    """An envelope that carries a token."""
    return Envelope(
        environment=fields.pop("environment", world.environment),
        message_id=new_id(),
        correlation_id=fields.pop("correlation_id", new_id()),
        kind="probe.sent",
        sender=Sender(role="supervisor", instance="host-1-1", version="0.1.0"),
        created_at=now_us(),
        body={"token": token},
        **fields,
    )


def event(world: World, token: str = "t", **fields: Any) -> Outgoing:
    """A probe to the supervisor's queue."""
    return Outgoing(Exchange.EVENTS, "probe.sent.supervisor", probe(world, token, **fields))


def work(world: World, token: str = "t", **fields: Any) -> Outgoing:
    """A probe in the work queue of the pool."""
    return Outgoing(Exchange.WORK, POOL, probe(world, token, **fields))

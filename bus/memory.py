"""The bus inside one process: the same promises as over RabbitMQ, kept by a MemoryBroker, shown by the same tests.

Messages are encoded and decoded as on the wire, so that what works here works there.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import cast

from bus import codec
from bus.api import (
    Consumer,
    Delivery,
    Exchange,
    OnDelivery,
    OnReconnect,
    Outgoing,
    PublishTimeoutError,
    Settlement,
    no_queue_takes,
    no_such_queue,
)
from bus.dispatch import Dispatcher
from bus.intake import Intake
from bus.memory_broker import MemoryBroker, Stored, Subscription
from bus.parking import parking_headers, parking_key
from bus.topology import Layout, Topology
from schemas.clock import now_us
from schemas.errors import BrokerUnreachableError, RolecallError, SettingsError

_log = logging.getLogger(__name__)

PUBLISH_LIMIT_S = 15.0
# Orders and progress are small and quickly done with.
OWN_PREFETCH = 100


class MemoryBus:
    """One member's access to a MemoryBroker."""

    def __init__(
        self,
        broker: MemoryBroker,
        environment: str,
        *,
        instance: str = "",
        publish_limit_s: float = PUBLISH_LIMIT_S,
    ) -> None:
        self._broker = broker
        self._topology = Topology(environment)
        self._instance = instance
        self._publish_limit_s = publish_limit_s
        self._intake = Intake(environment)
        self._pools: set[str] = set()
        self._consumers: list[MemoryConsumer] = []
        self._listeners: list[OnReconnect] = []
        self._keeper: asyncio.Task[None] | None = None
        self._lost = asyncio.Event()
        self._connected = asyncio.Event()

    @property
    def environment(self) -> str:
        return self._topology.environment

    @property
    def is_connected(self) -> bool:
        return self._connected.is_set()

    async def start(self) -> None:
        if not self._broker.running.is_set():
            raise BrokerUnreachableError(
                "The broker in this process is stopped.", suggestion="Start it first."
            )
        self.redeclare()
        self._connected.set()
        self._broker.on_stop.append(self._on_stop)
        self._keeper = asyncio.create_task(self._keep_connected(), name="memory bus")

    async def close(self) -> None:
        if self._keeper is None:
            return
        self._keeper.cancel()
        await asyncio.wait([self._keeper])
        self._keeper = None
        self._broker.on_stop.remove(self._on_stop)
        for consumer in tuple(self._consumers):
            await consumer.close()
        self._connected.clear()
        self._broker.disconnect(self)

    async def declare_pool(self, pool: str) -> None:
        self._pools.add(pool)
        await self._wait_connected()
        self._broker.declare(self._topology.pool(pool), self)

    async def publish(self, outgoing: Outgoing) -> None:
        (error,) = await self.publish_many([outgoing])
        if error is not None:
            raise error

    async def publish_many(self, batch: Sequence[Outgoing]) -> list[Exception | None]:
        results: list[Exception | None] = []
        for outgoing in batch:
            try:
                await self._publish_one(outgoing)
                results.append(None)
            except RolecallError as error:
                results.append(error)
        # A confirm takes a turn of the loop; without one, a busy publisher would never let its receivers run.
        await asyncio.sleep(0)
        return results

    async def consume(self, queue: str, on_delivery: OnDelivery, *, prefetch: int) -> Consumer:
        return await self._consume(Layout, queue, on_delivery, prefetch)

    async def consume_control(self, pool: str, instance: str, on_delivery: OnDelivery) -> Consumer:
        return await self._consume(
            lambda: self._topology.control(pool, instance), None, on_delivery, OWN_PREFETCH
        )

    async def consume_feed(self, task: str, on_delivery: OnDelivery) -> Consumer:
        return await self._consume(lambda: self._topology.feed(task), None, on_delivery, OWN_PREFETCH)

    async def settle(self, delivery: Delivery, settlement: Settlement, reason: str = "") -> None:
        subscription, tag = cast(tuple[Subscription, int], delivery.handle)
        if tag not in subscription.unsettled:
            return
        match settlement:
            case Settlement.ACK:
                subscription.ack(tag)
            case Settlement.RETRY:
                subscription.requeue(tag)
            case Settlement.PARK:
                headers = parking_headers(delivery, reason, self._instance)
                parked = Stored(delivery.raw, parking_key(delivery, self.environment), headers=headers)
                self._broker.publish(self._topology.exchange(Exchange.DEAD), parked)
                subscription.ack(tag)

    async def settle_many(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            await self.settle(delivery, Settlement.ACK)

    def add_reconnect_listener(self, callback: OnReconnect) -> None:
        self._listeners.append(callback)

    async def _publish_one(self, outgoing: Outgoing) -> None:
        envelope = outgoing.envelope
        raw = codec.encode(envelope)
        is_reliable = outgoing.exchange.is_reliable
        if not is_reliable and not self.is_connected:
            return
        await self._wait_connected()
        message = Stored(
            raw,
            outgoing.key,
            expires_at=None if envelope.ttl_ms is None else now_us() + envelope.ttl_ms * 1_000,
            is_persistent=is_reliable,
        )
        routed = self._broker.publish(self._topology.exchange(outgoing.exchange), message)
        if is_reliable and not routed:
            raise no_queue_takes(outgoing)

    async def _wait_connected(self) -> None:
        if self._keeper is None:
            raise BrokerUnreachableError("The bus is closed.", suggestion="Start it first.")
        try:
            async with asyncio.timeout(self._publish_limit_s):
                await self._connected.wait()
        except TimeoutError as error:
            raise PublishTimeoutError(
                f"The broker was away for {self._publish_limit_s:g} s.",
                suggestion="Publish the same envelope again.",
            ) from error

    async def _consume(
        self, layout: Callable[[], Layout], queue: str | None, on_delivery: OnDelivery, prefetch: int
    ) -> "MemoryConsumer":
        await self._wait_connected()
        self._consumers = [consumer for consumer in self._consumers if not consumer.is_over]
        dispatcher = Dispatcher(queue or "own queue", on_delivery, self.settle)
        consumer = MemoryConsumer(self._broker, self, self._intake, dispatcher, layout, queue, prefetch)
        try:
            consumer.open()
        except SettingsError:
            await consumer.close()
            raise
        self._consumers.append(consumer)
        return consumer

    def redeclare(self) -> None:
        """Declare what this bus knows of."""
        self._broker.declare(self._topology.core, self)
        for pool in self._pools:
            self._broker.declare(self._topology.pool(pool), self)

    def _on_stop(self) -> None:
        self._connected.clear()
        for consumer in self._consumers:
            consumer.lose()
        self._broker.disconnect(self)
        self._lost.set()

    async def _keep_connected(self) -> None:
        while True:
            await self._lost.wait()
            await self._broker.running.wait()
            self._lost.clear()
            self.redeclare()
            for consumer in self._consumers:
                consumer.open()
            self._connected.set()
            for listener in self._listeners:
                try:
                    await listener()
                except Exception:
                    _log.exception("A reconnect listener failed.", extra={"action": "bus.listener_failed"})


class MemoryConsumer:
    """A subscription that outlives restarts of the broker and the deletion of its queue."""

    def __init__(
        self,
        broker: MemoryBroker,
        owner: MemoryBus,
        intake: Intake,
        dispatcher: Dispatcher,
        layout: Callable[[], Layout],
        queue: str | None,
        prefetch: int,
    ) -> None:
        self._broker = broker
        self._owner = owner
        self._intake = intake
        self._dispatcher = dispatcher
        self._layout = layout
        self._queue = queue
        self._prefetch = prefetch
        self._subscription: Subscription | None = None
        self._cancelled = False

    @property
    def is_active(self) -> bool:
        return self._subscription is not None and self._subscription.is_open

    @property
    def is_over(self) -> bool:
        """True once it was cancelled and has nothing left to settle."""
        return self._cancelled and not (self._subscription and self._subscription.unsettled)

    async def cancel(self) -> None:
        self._cancelled = True
        unseen = self._dispatcher.stop()
        if self._subscription is not None:
            self._subscription.cancel()
            self._subscription.requeue(*(delivery.handle[1] for delivery in unseen))

    async def close(self) -> None:
        """Cancel, wait for the callback, and give back what is not settled."""
        await self.cancel()
        await self._dispatcher.join()
        self.lose()

    def open(self) -> None:
        """Subscribe (again). Raises SettingsError if there is no such queue."""
        if self._cancelled:
            return
        layout = self._layout()
        self._broker.declare(layout, self._owner)
        name = self._queue or layout.queues[0].name
        queue = self._broker.queues.get(name)
        if queue is None:
            raise no_such_queue(name)

        def hand_over(tag: int, message: Stored) -> None:
            delivery = self._intake.read(
                message.raw,
                queue=name,
                exchange=message.exchange,
                key=message.key,
                redelivered=message.returns > 0,
                headers=message.headers,
                handle=(subscription, tag),
            )
            self._dispatcher.put(delivery)

        subscription = Subscription(queue, self._prefetch, hand_over, self._on_gone)
        self._subscription = subscription
        self._broker.subscribe(subscription)

    def lose(self) -> None:
        """What a lost connection does: nothing more arrives, and what is not settled goes back."""
        self._dispatcher.take_back()
        if self._subscription is not None:
            self._subscription.cancel()
            self._subscription.requeue(*self._subscription.unsettled)

    def _on_gone(self) -> None:
        # The queue was deleted: as on RabbitMQ, whoever consumes from it declares it again.
        self.lose()
        self._owner.redeclare()
        self.open()

"""The bus over RabbitMQ: one session at a time, replaced when it is lost, and what must survive that.

A session that is lost is replaced after jittered waits, over the first address that lets us in; then the topology is
declared again, consumers come back, and whoever listens is told. A queue or exchange with other arguments than ours
is the end: every call says so from then on, instead of trying for ever.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from bus.amqp.consume import FIRST_OPEN_LIMIT_S, AmqpConsumer
from bus.amqp.declare import DECLARE_LIMIT_S, Declarer
from bus.amqp.publish import LOST, Publisher
from bus.amqp.session import Session, quiet_libraries
from bus.amqp.stream import Stream
from bus.api import (
    Consumer,
    Delivery,
    Exchange,
    OnDelivery,
    OnReconnect,
    Outgoing,
    Settlement,
    TopologyMismatchError,
)
from bus.dispatch import Dispatcher
from bus.intake import Intake
from bus.parking import parking_headers, parking_key
from bus.topology import Layout, Topology
from schemas.errors import BrokerUnreachableError, RolecallError, SettingsError

_log = logging.getLogger(__name__)

# Longer than a broker on the same machine takes to start again.
PUBLISH_LIMIT_S = 15.0
# Orders and progress are small and quickly done with.
OWN_PREFETCH = 100
# The first attempt comes quickly, later ones never further apart than this; jitter keeps a fleet from coming at once.
FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 3.0
CLOSE_LIMIT_S = 5.0


class AmqpBus:
    """One process's access to RabbitMQ.

    `urls` are addresses of one broker or cluster, tried in this order. `instance` signs what is parked and names the
    connections. `roles_of_users`: see `bus.intake.Intake`.
    """

    def __init__(
        self,
        environment: str,
        urls: str | Sequence[str],
        *,
        instance: str = "",
        publish_limit_s: float = PUBLISH_LIMIT_S,
        roles_of_users: Mapping[str, str] | None = None,
    ) -> None:
        self._topology = Topology(environment)
        self._limit_s = publish_limit_s
        self._urls = (urls,) if isinstance(urls, str) else tuple(urls)
        self._instance = instance
        self._intake = Intake(environment, roles_of_users)
        # Dead letters were published by whoever parked them, so the broker's word on the publisher says nothing.
        self._dead_intake = Intake(environment)
        self._publisher = Publisher(
            self._topology, ready=self.ready, redeclare=self.redeclare, limit_s=publish_limit_s
        )
        self._pools: set[str] = set()
        self._consumers: list[AmqpConsumer] = []
        self._idle_streams: list[Stream] = []
        self._listeners: list[OnReconnect] = []
        self._session: Session | None = None
        self._usable = asyncio.Event()  # a session is there, or an end that callers have to hear of
        self._end: RolecallError | None = BrokerUnreachableError(
            "The bus is not open.", suggestion="Start it first."
        )
        self._usable.set()
        self._declaring = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None

    @property
    def environment(self) -> str:
        return self._topology.environment

    @property
    def is_connected(self) -> bool:
        return self._session is not None and not self._session.lost.is_set() and self._end is None

    async def start(self) -> None:
        quiet_libraries()
        self._session = await self._connect()
        self._end = None
        self._keeper = asyncio.create_task(self._keep_connected(), name="amqp bus")

    async def close(self) -> None:
        if self._keeper is None:
            return
        consumers, self._consumers = self._consumers, []
        await asyncio.gather(*(consumer.close() for consumer in consumers))
        if self.is_connected:
            await self._publisher.drain(CLOSE_LIMIT_S)
        self._stop(BrokerUnreachableError("The bus is closed.", suggestion="Start it first."))
        self._keeper.cancel()
        await asyncio.wait([self._keeper])
        self._keeper = None
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def declare_pool(self, pool: str) -> None:
        self._topology.work(pool)  # refuses a bad name before it is remembered
        self._pools.add(pool)
        try:
            async with asyncio.timeout(self._limit_s):
                while not await self._try_declare(self._topology.pool(pool)):
                    pass
        except TimeoutError as error:
            raise BrokerUnreachableError(
                f"The broker did not declare the queue of pool {pool!r} within {self._limit_s:g} s.",
                suggestion="Look into its log; `rolecall doctor` checks the broker.",
            ) from error

    async def publish(self, outgoing: Outgoing) -> None:
        if outgoing.exchange.is_reliable:
            await self._publisher.publish(outgoing)
        else:
            self._check_not_ended()
            await self._publisher.publish_loosely(outgoing, self._session)

    async def publish_many(self, batch: Sequence[Outgoing]) -> list[Exception | None]:
        return await self._publisher.publish_many(batch)

    async def consume(self, queue: str, on_delivery: OnDelivery, *, prefetch: int) -> Consumer:
        return await self._consume(on_delivery, queue=queue, own_layout=None, prefetch=prefetch)

    async def consume_control(self, pool: str, instance: str, on_delivery: OnDelivery) -> Consumer:
        return await self._consume(on_delivery, own_layout=lambda: self._topology.control(pool, instance))

    async def consume_feed(self, task: str, on_delivery: OnDelivery) -> Consumer:
        return await self._consume(on_delivery, own_layout=lambda: self._topology.feed(task))

    async def settle(self, delivery: Delivery, settlement: Settlement, reason: str = "") -> None:
        stream, tag = cast(tuple[Stream, int], delivery.handle)
        if not stream.owns(tag):
            return
        match settlement:
            case Settlement.ACK:
                await stream.ack([tag])
            case Settlement.RETRY:
                await stream.give_back([tag])
            case Settlement.PARK:
                await self._park(delivery, reason)
                await stream.ack([tag])

    async def settle_many(self, deliveries: Sequence[Delivery]) -> None:
        by_stream: dict[Stream, list[int]] = {}
        for delivery in deliveries:
            stream, tag = cast(tuple[Stream, int], delivery.handle)
            by_stream.setdefault(stream, []).append(tag)
        for stream, tags in by_stream.items():
            await stream.ack(tags)

    def add_reconnect_listener(self, callback: OnReconnect) -> None:
        self._listeners.append(callback)

    # ---- what publisher and consumers need ----------------------------------------------------------------------

    async def ready(self) -> Session:
        """Wait for a session. Raises what ended the bus."""
        while True:
            await self._usable.wait()
            self._check_not_ended()
            if self._session is not None and not self._session.lost.is_set():
                return self._session
            self._usable.clear()

    async def redeclare(self) -> None:
        """Declare all that this process knows of, as far as there is a session to do it over."""
        session = self._session
        if session is None or session.lost.is_set():
            return
        try:
            await self._declare_all(session)
        except TopologyMismatchError as error:
            self._stop(error)
            raise
        except (*LOST, TimeoutError) as error:
            _log.debug("Could not declare again: %r.", error, extra={"action": "bus.declare_failed"})

    def borrow_stream(self, session: Session) -> Stream | None:
        """An idle stream of this session: a worker cancels and consumes again for every action it takes."""
        self._idle_streams = [one for one in self._idle_streams if one.is_open and one.session is session]
        return self._idle_streams.pop() if self._idle_streams else None

    def return_stream(self, stream: Stream) -> None:
        """Keep a stream for the next consumer; its unsettled deliveries stay ours."""
        self._idle_streams.append(stream)

    # ---- helpers -------------------------------------------------------------------------------------------------

    async def _consume(
        self,
        on_delivery: OnDelivery,
        *,
        own_layout: Callable[[], Layout] | None,
        queue: str | None = None,
        prefetch: int = OWN_PREFETCH,
    ) -> AmqpConsumer:
        self._check_not_ended()
        self._consumers = [consumer for consumer in self._consumers if not consumer.is_over]
        consumer = AmqpConsumer(
            self,
            self._dead_intake if queue == self._topology.dead else self._intake,
            Dispatcher(queue or "own queue", on_delivery, self.settle),
            queue=queue,
            own_layout=own_layout,
            prefetch=prefetch,
        )
        self._consumers.append(consumer)
        try:
            await consumer.wait_active(FIRST_OPEN_LIMIT_S)
        except BaseException:
            await consumer.close()
            raise
        return consumer

    async def _park(self, delivery: Delivery, reason: str) -> None:
        headers = parking_headers(delivery, reason, self._instance)
        key = parking_key(delivery, self.environment)
        try:
            await self._publisher.publish_raw(Exchange.DEAD, key, delivery.raw, headers)
        except RolecallError:
            # Not parked, so it must come again; it would hang on us until the connection ends.
            await self.settle(delivery, Settlement.RETRY)
            raise

    def _check_not_ended(self) -> None:
        if self._end is not None:
            # A new one each time: a raised exception collects the tracebacks of everybody who raised it.
            raise type(self._end)(self._end.message, suggestion=self._end.suggestion)

    def _stop(self, end: RolecallError) -> None:
        self._end = end
        self._usable.set()

    async def _connect(self) -> Session:
        session = await Session.open(self._urls, self._instance or "rolecall")
        try:
            await self._declare_all(session)
        except BaseException as error:
            await session.close()
            if isinstance(error, (*LOST, TimeoutError)):
                raise BrokerUnreachableError(
                    f"The broker went away while the topology was declared: {error!r}.",
                    suggestion="Look into its log.",
                ) from error
            raise
        return session

    async def _declare_all(self, session: Session) -> None:
        layouts = [self._topology.core, *(self._topology.pool(pool) for pool in sorted(self._pools))]
        for layout in layouts:
            await self._declare(session, layout)

    async def _try_declare(self, layout: Layout) -> bool:
        session = await self.ready()
        try:
            async with asyncio.timeout(DECLARE_LIMIT_S):
                await self._declare(session, layout)
        except (*LOST, TimeoutError):
            await asyncio.sleep(FIRST_WAIT_S)
            return False
        return True

    async def _declare(self, session: Session, layout: Layout) -> None:
        async with self._declaring:
            await Declarer(session.consuming_channel).declare(layout)

    async def _keep_connected(self) -> None:
        while True:
            assert self._session is not None
            await self._session.lost.wait()
            _log.warning("The connection to the broker is lost.", extra={"action": "bus.disconnected"})
            await self._session.close()
            try:
                self._session = await self._connect_again()
            except TopologyMismatchError as error:
                _log.error("The bus cannot go on: %s", error, extra={"action": "bus.ended"})
                self._stop(error)
                return
            self._usable.set()
            _log.info("The connection to the broker is back.", extra={"action": "bus.reconnected"})
            consumers = [one for one in self._consumers if not one.is_over]
            await asyncio.gather(
                *(one.wait_active(FIRST_OPEN_LIMIT_S) for one in consumers), return_exceptions=True
            )
            for listener in self._listeners:
                try:
                    await listener()
                except Exception:
                    _log.exception("A reconnect listener failed.", extra={"action": "bus.listener_failed"})

    async def _connect_again(self) -> Session:
        wait_s = FIRST_WAIT_S
        while True:
            await asyncio.sleep(random.uniform(wait_s / 2, wait_s))
            try:
                return await self._connect()
            except (
                SettingsError
            ) as error:  # no broker, or one where something is missing that we may not declare
                _log.warning("%s", error, extra={"action": "bus.unreachable"})
            wait_s = min(LONGEST_WAIT_S, wait_s * 2)

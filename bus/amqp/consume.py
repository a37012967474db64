"""A subscription that outlives channels and connections until it is cancelled.

One task keeps it: open a stream, consume, wait until the stream is lost, again. One that hears nothing for a while
consumes anew: RabbitMQ 3.10 has been seen to forget a consumer without a word, after a queue was deleted and declared. A stream that the broker closed, or on
which it cancelled the consumer, is never used again. After a loss it declares what it consumes from: a deleted queue
comes back, and an own queue (orders, progress) gets a new name, for the old one may still be locked.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from aiormq.abc import DeliveredMessage
from aiormq.exceptions import ChannelAccessRefused, ChannelNotFoundEntity

from bus.amqp.declare import bind_queue, declare_queue
from bus.amqp.publish import LOST
from bus.amqp.session import Session
from bus.amqp.stream import Stream
from bus.api import Delivery, no_such_queue
from bus.dispatch import Dispatcher
from bus.intake import Intake
from bus.topology import Layout
from schemas.errors import RolecallError, SettingsError

_log = logging.getLogger(__name__)

# A queue that is deleted in a loop, or refused, is asked for this often at most.
LONGEST_WAIT_S = 2.0
FIRST_OPEN_LIMIT_S = 10.0
# A consumer that heard nothing for this long asks to consume once more: silence may mean that it was forgotten.
IDLE_RENEW_S = 30.0


class Home(Protocol):
    """What a consumer needs of its bus."""

    async def ready(self) -> Session:
        """Wait for a session."""

    async def redeclare(self) -> None:
        """Bring back what was deleted."""

    def borrow_stream(self, session: Session) -> Stream | None:
        """An open stream of this session that no consumer uses."""

    def return_stream(self, stream: Stream) -> None:
        """Give back a stream that no consumer uses any more."""


class AmqpConsumer:
    """Consumes from a shared queue by name, or from an own one whose layout is made anew each time."""

    def __init__(
        self,
        home: Home,
        intake: Intake,
        dispatcher: Dispatcher,
        *,
        queue: str | None,
        own_layout: Callable[[], Layout] | None,
        prefetch: int,
    ) -> None:
        self._home = home
        self._intake = intake
        self._dispatcher = dispatcher
        self._queue = queue
        self._own_layout = own_layout
        self._prefetch = prefetch
        self._stream: Stream | None = None
        self._name = queue or ""
        self._tag = ""
        self._has_heard = False
        self._active = asyncio.Event()
        self._cancelled = asyncio.Event()
        self._changing = asyncio.Lock()  # held while a stream is opened or the consumer ended
        self._ending: asyncio.Task[None] | None = None
        self._refusal: RolecallError | None = None
        self._task = asyncio.create_task(self._keep(), name=f"consume {queue or 'own queue'}")

    @property
    def is_active(self) -> bool:
        return self._active.is_set() and not self._cancelled.is_set()

    @property
    def is_over(self) -> bool:
        """True once it was cancelled."""
        return self._cancelled.is_set()

    async def wait_active(self, limit_s: float) -> None:
        """Wait until the broker hands us messages, with a limit; raises what the broker refused us for."""
        active = asyncio.create_task(self._active.wait())
        await asyncio.wait([active, self._task], timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        active.cancel()
        if self._refusal is not None:
            raise self._refusal

    async def cancel(self) -> None:
        # Shielded and done once: a cancel that stops half way would leave a consumer on the broker that nobody hears.
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(), name="cancel consumer")
        await asyncio.shield(self._ending)

    async def close(self) -> None:
        """Cancel, and wait for the callback that is under way."""
        await self.cancel()
        await self._dispatcher.join()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _end(self) -> None:
        self._cancelled.set()
        async with self._changing:
            stream, self._stream = self._stream, None
            self._active.clear()
            if stream is not None and stream.is_open:
                await stream.cancel(self._tag)
            unseen = self._dispatcher.stop()
            if stream is not None and stream.is_open:
                await stream.give_back(_tags(unseen))
                self._home.return_stream(stream)

    async def _keep(self) -> None:
        attempt = 0
        while not self._cancelled.is_set():
            try:
                session = await self._home.ready()
            except RolecallError:
                return  # the bus is closed, or its end is told to everybody who publishes
            try:
                async with self._changing:
                    if not self._cancelled.is_set():
                        await self._open(session, is_first=attempt == 0)
            except (ChannelNotFoundEntity, ChannelAccessRefused, *LOST, TimeoutError) as error:
                if attempt == 0 and self._is_refused(error):
                    return
                attempt += 1
                _log.warning(
                    "Cannot consume from %s yet: %r.",
                    self._queue or "an own queue",
                    error,
                    extra={"action": "bus.consume_failed"},
                )
                await asyncio.sleep(random.uniform(0.05, min(LONGEST_WAIT_S, 0.1 * 2.0**attempt)))
                await self._redeclare()
                continue
            attempt = 1  # from here on a refusal is an event of operation, not a mistake of the caller
            await self._wait_lost()

    async def _open(self, session: Session, *, is_first: bool) -> None:
        stream = (self._home.borrow_stream(session) if is_first else None) or await Stream.open(session)
        queue = self._queue
        if self._own_layout is not None:
            layout = self._own_layout()
            (spec,) = layout.queues
            queue = spec.name
            await declare_queue(stream.channel, spec)
            for binding in layout.bindings:
                await bind_queue(stream.channel, binding)
        assert queue is not None
        self._name = queue
        self._tag = await stream.consume(queue, self._prefetch, self._on_message)
        self._stream = stream
        self._active.set()

    def _on_message(self, stream: Stream, tag: int, message: DeliveredMessage) -> None:
        self._has_heard = True
        self._dispatcher.put(self._read(self._name, stream, tag, message))

    def _read(self, queue: str, stream: Stream, tag: int, message: DeliveredMessage) -> Delivery:
        properties = message.header.properties
        return self._intake.read(
            message.body,
            queue=queue,
            exchange=message.exchange or "",
            key=message.routing_key or "",
            redelivered=bool(message.redelivered),
            headers=properties.headers or {},
            handle=(stream, tag),
            user=properties.user_id,
        )

    def _is_refused(self, error: BaseException) -> bool:
        """True if the very first attempt failed for a reason that the caller has to hear."""
        if isinstance(error, ChannelNotFoundEntity):
            self._refusal = no_such_queue(self._queue or "own queue")
        elif isinstance(error, ChannelAccessRefused):
            self._refusal = SettingsError(
                f"This user may not read from {self._queue or 'an own queue'!r}: {error}.",
                suggestion="Grant it that right, or use another user.",
            )
        return self._refusal is not None

    async def _wait_lost(self) -> None:
        stream = self._stream
        if stream is None:
            return
        waits = [asyncio.create_task(stream.lost.wait()), asyncio.create_task(self._cancelled.wait())]
        try:
            while not (await asyncio.wait(waits, timeout=IDLE_RENEW_S, return_when=asyncio.FIRST_COMPLETED))[
                0
            ]:
                await self._renew(stream)
        finally:
            for one in waits:
                one.cancel()
        if self._cancelled.is_set():
            return
        self._active.clear()
        self._stream = None
        # The broker hands these out again; handling them now would only do the work twice.
        self._dispatcher.take_back()
        with suppress(*LOST, TimeoutError):
            await stream.channel.close(timeout=1.0)
        if not stream.session.lost.is_set():
            await self._redeclare()

    async def _renew(self, stream: Stream) -> None:
        has_heard, self._has_heard = self._has_heard, False
        # Own queues die with the connection, so nobody else can have deleted one.
        if has_heard or self._own_layout is not None:
            return
        async with self._changing:
            if self._cancelled.is_set() or not stream.is_open:
                return
            try:
                await stream.cancel(self._tag)
                self._tag = await stream.consume(self._name, self._prefetch, self._on_message)
            except (*LOST, TimeoutError):
                stream.lost.set()

    async def _redeclare(self) -> None:
        # What cannot be declared is told to everybody by the bus, or shows when the queue is still not there.
        with suppress(RolecallError, *LOST, TimeoutError):
            await self._home.redeclare()


def _tags(deliveries: list[Delivery]) -> list[int]:
    return [delivery.handle[1] for delivery in deliveries]

"""A subscription that outlives channels and connections until it is cancelled.

One task keeps it: open a stream, consume, wait until the stream is lost, again. A stream that the broker closed, or on
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
from bus.api import Delivery, TopologyMismatchError, no_such_queue
from bus.dispatch import Dispatcher
from bus.intake import Intake
from bus.topology import Layout
from schemas.errors import RolecallError, SettingsError

_log = logging.getLogger(__name__)

# A queue that is deleted in a loop, or refused, is asked for this often at most.
LONGEST_WAIT_S = 2.0
FIRST_OPEN_LIMIT_S = 10.0


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
        self._tag = ""
        self._active = asyncio.Event()
        self._cancelled = asyncio.Event()
        self._changing = asyncio.Lock()  # held while a stream is opened or the consumer ended
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
        if self._cancelled.is_set():
            return
        self._cancelled.set()
        async with self._changing:
            stream, self._stream = self._stream, None
            self._active.clear()
            if stream is None:
                self._dispatcher.stop()
                return
            if stream.is_open:
                await stream.cancel(self._tag)
            await stream.give_back(_tags(self._dispatcher.stop()))
            if stream.is_open:
                self._home.return_stream(stream)

    async def close(self) -> None:
        """Cancel, and wait for the callback that is under way."""
        await self.cancel()
        self._dispatcher.stop()  # a cancel that was itself cancelled may not have come so far
        await self._dispatcher.join()
        self._task.cancel()
        await asyncio.wait([self._task])

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
                with suppress(*LOST, TimeoutError):
                    await self._home.redeclare()
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
        name = queue

        def on_message(stream: Stream, tag: int, message: DeliveredMessage) -> None:
            self._dispatcher.put(self._read(name, stream, tag, message))

        self._tag = await stream.consume(name, self._prefetch, on_message)
        self._stream = stream
        self._active.set()

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
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
        if self._cancelled.is_set():
            return
        self._active.clear()
        self._stream = None
        # The broker hands these out again; handling them now would only do the work twice.
        self._dispatcher.take_back()
        with suppress(*LOST, TimeoutError, TopologyMismatchError):
            await stream.channel.close(timeout=1.0)
        if not stream.session.lost.is_set():
            with suppress(*LOST, TimeoutError):
                await self._home.redeclare()


def _tags(deliveries: list[Delivery]) -> list[int]:
    return [delivery.handle[1] for delivery in deliveries]

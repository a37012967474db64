"""Publishing: persistent, mandatory, confirmed and within a time limit; heartbeat and feed fire and forget.

A publish that the broker did not answer may have landed. So when the channel or the connection is lost, the same
envelope goes out again over a new channel (receivers know it by its message_id), until the time limit; and a channel
on which a publish timed out is not used again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiormq.channel import Channel
from aiormq.exceptions import (
    AMQPError,
    ChannelAccessRefused,
    ChannelInvalidStateError,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
    PublishError,
)
from pamqp.commands import Basic

from bus import codec
from bus.amqp.properties import PropertyMaker
from bus.amqp.session import Session
from bus.api import Exchange, Outgoing, PublishTimeoutError, no_queue_takes
from bus.topology import Topology
from schemas.errors import ContractError, RolecallError, SettingsError

_log = logging.getLogger(__name__)

# A heartbeat that the broker does not take at once is worth nothing later.
LOOSE_LIMIT_S = 2.0
CHANNEL_CLOSE_LIMIT_S = 5.0
# Between attempts, when the broker answers but refuses.
_REFUSED_WAIT_S = 0.2
_MAX_KEY_BYTES = 255

# What the libraries raise when a channel or connection is gone: their own errors, and plain ones underneath.
LOST = (AMQPError, ChannelInvalidStateError, ConnectionError, OSError, RuntimeError)

WaitReady = Callable[[], Awaitable[Session]]
Redeclare = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Ready:
    """A message that is encoded and addressed."""

    exchange: str
    key: str
    raw: bytes
    properties: Callable[[str], Basic.Properties]
    outgoing: Outgoing | None = None


class Publisher:
    """All publishes of one process. `ready` waits for a session, `redeclare` brings back what was deleted."""

    def __init__(self, topology: Topology, *, ready: WaitReady, redeclare: Redeclare, limit_s: float) -> None:
        self._topology = topology
        self._ready = ready
        self._redeclare = redeclare
        self._limit_s = limit_s
        self._properties = PropertyMaker()
        self._channels: dict[Exchange | None, tuple[Session, Channel]] = {}
        self._opening = asyncio.Lock()
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing: set[asyncio.Task[None]] = set()

    async def publish(self, outgoing: Outgoing) -> None:
        """Publish one message; returns once it is confirmed."""
        message = self._prepare(outgoing)
        await self._publish_surely(message)

    async def publish_many(self, batch: Sequence[Outgoing]) -> list[Exception | None]:
        """Publish all in order, and await the confirms together."""
        results = await asyncio.gather(*map(self.publish, batch), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, Exception):
                raise result
        return [result if isinstance(result, Exception) else None for result in results]

    async def publish_loosely(self, outgoing: Outgoing, session: Session | None) -> None:
        """Publish without confirm; what the broker does not take now is dropped."""
        raw = codec.encode(outgoing.envelope)
        if session is None or session.lost.is_set():
            return
        properties = self._properties.of_envelope(outgoing.envelope, user=session.user, is_persistent=False)
        exchange = outgoing.exchange
        try:
            async with asyncio.timeout(LOOSE_LIMIT_S):
                channel = await self._channel(session, exchange)
                await channel.basic_publish(
                    raw,
                    exchange=self._topology.exchange(exchange),
                    routing_key=_checked_key(outgoing.key),
                    properties=properties,
                    wait=False,
                )
        except (*LOST, TimeoutError) as error:
            self._retire(exchange)
            _log.debug(
                "A %s was dropped: %r.", outgoing.envelope.kind, error, extra={"action": "bus.dropped"}
            )

    async def publish_raw(self, exchange: Exchange, key: str, raw: bytes, headers: dict[str, Any]) -> None:
        """Publish bytes as they are, confirmed, with these headers only."""
        await self._publish_surely(
            _Ready(
                self._topology.exchange(exchange),
                key,
                raw,
                lambda user: self._properties.of_raw(headers, user=user),
            )
        )

    async def drain(self, limit_s: float) -> None:
        """Wait until no publish is under way, with a limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._idle.wait()

    def _prepare(self, outgoing: Outgoing) -> _Ready:
        envelope = outgoing.envelope
        return _Ready(
            self._topology.exchange(outgoing.exchange),
            _checked_key(outgoing.key),
            codec.encode(envelope),
            lambda user: self._properties.of_envelope(envelope, user=user, is_persistent=True),
            outgoing,
        )

    async def _publish_surely(self, message: _Ready) -> None:
        self._under_way += 1
        self._idle.clear()
        try:
            async with asyncio.timeout(self._limit_s):
                while not await self._attempt(message):
                    pass
        except TimeoutError as error:
            # Whatever this channel still confirms, it did not confirm this in time.
            self._retire(None)
            raise PublishTimeoutError(
                f"The broker did not confirm a message to {message.exchange!r} within {self._limit_s:g} s; "
                "it may have landed.",
                suggestion="Publish the same envelope again.",
            ) from error
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def _attempt(self, message: _Ready) -> bool:
        """One attempt; False asks for another."""
        session = await self._ready()
        channel: Channel | None = None
        try:
            channel = await self._channel(session, None)
            await channel.basic_publish(
                message.raw,
                exchange=message.exchange,
                routing_key=message.key,
                properties=message.properties(session.user),
                mandatory=True,
                wait=False,
            )
        except PublishError as error:
            raise _unroutable(message) from error
        except DeliveryError:
            # A full queue, or a cluster without a majority: the broker's answer is "not now".
            await asyncio.sleep(_REFUSED_WAIT_S)
            return False
        except (ChannelAccessRefused, ChannelPreconditionFailed) as error:
            self._retire(None, channel)
            if isinstance(error, ChannelAccessRefused) and f"'{message.exchange}'" not in str(error):
                return False  # another message's refusal closed the channel that this one was on
            raise SettingsError(
                f"The broker refuses a message to {message.exchange!r}: {error}.",
                suggestion="Grant this user the right to write there.",
            ) from error
        except ChannelNotFoundEntity:
            self._retire(None, channel)
            await self._redeclare()
            return False
        except asyncio.CancelledError:
            # The library cancels what waits on a lost channel; only if nobody cancelled *us* is it that.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._retire(None, channel)
            return False
        except LOST as error:
            self._retire(None, channel)
            _log.debug("A publish is repeated: %r.", error, extra={"action": "bus.publish_repeated"})
            # A connection that is gone is noticed by its reader a moment later than by us.
            await asyncio.sleep(0.01)
            return False
        return True

    async def _channel(self, session: Session, lane: Exchange | None) -> Channel:
        """The session's channel of a lane: None for all that is confirmed, the exchange for what is not."""
        known = self._channels.get(lane)
        if known is not None and known[0] is session and not known[1].is_closed:
            return known[1]
        async with self._opening:
            known = self._channels.get(lane)
            if known is not None and known[0] is session and not known[1].is_closed:
                return known[1]
            channel = await session.publishing_channel(confirms=lane is None)
            self._channels[lane] = (session, channel)
            return channel

    def _retire(self, lane: Exchange | None, channel: Channel | None = None) -> None:
        """Use the lane's channel no more (only if it is still `channel`, where that is given), and close it."""
        known = self._channels.get(lane)
        if known is None or (channel is not None and known[1] is not channel):
            return
        del self._channels[lane]
        task = asyncio.create_task(_close(known[1]), name="close channel")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _unroutable(message: _Ready) -> RolecallError:
    if message.outgoing is None:
        return SettingsError(f"No queue takes parked messages from {message.exchange!r}.")
    return no_queue_takes(message.outgoing)


def _checked_key(key: str) -> str:
    if len(key.encode()) > _MAX_KEY_BYTES:
        raise ContractError(f"The routing key {key[:60]!r}… is longer than {_MAX_KEY_BYTES} bytes.")
    return key


async def _close(channel: Channel) -> None:
    with suppress(*LOST, TimeoutError):
        await channel.close(timeout=CHANNEL_CLOSE_LIMIT_S)

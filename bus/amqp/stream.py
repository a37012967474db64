"""A channel that deliveries come through, and the one place where they are acknowledged.

It remembers which deliveries are not settled. So settling one twice does nothing (the broker would close the channel),
a group that holds all older ones is acknowledged with one frame, and when the channel is lost everything on it is
nobody's any more: the broker hands it out again.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from aiormq.abc import DeliveredMessage
from aiormq.channel import Channel
from aiormq.exceptions import ChannelInvalidStateError

from bus.amqp.publish import LOST
from bus.amqp.session import Session

RPC_LIMIT_S = 10.0

OnMessage = Callable[["Stream", int, DeliveredMessage], None]


class Stream:
    """One consuming channel; consumers may use it one after the other."""

    def __init__(self, session: Session, channel: Channel) -> None:
        self.session = session
        self.channel = channel
        self.lost = asyncio.Event()
        self._unsettled: dict[int, None] = {}
        self._prefetch: int | None = None
        channel.closing.add_done_callback(self._on_close)
        channel.on_consumer_cancel_callbacks.add(self._on_server_cancel)

    @classmethod
    async def open(cls, session: Session) -> "Stream":
        """A stream on a new channel."""
        return cls(session, await session.consuming_channel())

    @property
    def is_open(self) -> bool:
        """True while deliveries of this stream can be settled."""
        return not self.lost.is_set() and not self.channel.is_closed

    async def consume(self, queue: str, prefetch: int, on_message: OnMessage) -> str:
        """Begin to receive; returns the consumer's tag."""
        if prefetch != self._prefetch:
            # Not global (4.3 refuses that): it counts for each consumer that starts after it.
            await self.channel.basic_qos(prefetch_count=prefetch, timeout=RPC_LIMIT_S)
            self._prefetch = prefetch

        def receive(message: DeliveredMessage) -> None:
            tag = message.delivery_tag
            if tag is not None and self.is_open:
                self._unsettled[tag] = None
                on_message(self, tag, message)

        # The library calls this in a task of its own, which it would cancel with the connection; it only takes note.
        confirmed = await self.channel.basic_consume(queue, receive, timeout=RPC_LIMIT_S)  # type: ignore[arg-type]
        return confirmed.consumer_tag or ""

    async def cancel(self, consumer_tag: str) -> None:
        """End a consumer; when this returns, its last delivery has been received."""
        with suppress(*LOST, TimeoutError):
            await self.channel.basic_cancel(consumer_tag, timeout=RPC_LIMIT_S)

    def owns(self, tag: int) -> bool:
        """True if the delivery is still ours to settle."""
        return tag in self._unsettled and self.is_open

    async def ack(self, tags: Iterable[int]) -> None:
        """Acknowledge deliveries; those that are settled or lost are left alone."""
        if not self.is_open:
            return
        wanted = {tag for tag in tags if tag in self._unsettled}
        highest = 0
        for tag in self._unsettled:
            if tag not in wanted:
                break
            highest = tag
        for tag in wanted:
            del self._unsettled[tag]
        with suppress(ChannelInvalidStateError):
            if highest:
                await self.channel.basic_ack(highest, multiple=True, wait=False)
            for tag in sorted(wanted):
                if tag > highest:
                    await self.channel.basic_ack(tag, wait=False)

    async def give_back(self, tags: Iterable[int]) -> None:
        """Have the broker hand deliveries out again."""
        with suppress(ChannelInvalidStateError):
            for tag in tags:
                if self.owns(tag):
                    del self._unsettled[tag]
                    await self.channel.basic_nack(tag, requeue=True, wait=False)

    def _on_close(self, _: object) -> None:
        self.lost.set()
        self._unsettled.clear()

    def _on_server_cancel(self, _: object) -> None:
        # Its queue was deleted, or moved. The library has been seen to consume never again on such a channel.
        self.lost.set()

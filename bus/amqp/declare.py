"""Puts a layout onto the broker. What exists with other arguments is a loud and final error that names the argument.

Where an administrator has declared everything and we may not, we only look whether it is there.
"""

import re
from collections.abc import Awaitable, Callable

from aiormq.channel import Channel
from aiormq.exceptions import ChannelAccessRefused, ChannelNotFoundEntity, ChannelPreconditionFailed

from bus.api import TopologyMismatchError
from bus.topology import Binding, ExchangeSpec, Layout, QueueSpec
from schemas.errors import SettingsError

DECLARE_LIMIT_S = 5.0

# "PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'a.work.x' in vhost '/': received the value
# '20' of type 'signedint' but current is the value '10' of type 'signedint'"
_INEQUIVALENT = re.compile(
    r"inequivalent arg '(?P<argument>[^']*)' for (?P<thing>\w+) '(?P<name>[^']*)'[^:]*:"
    r" received (?P<ours>.*?) but current is (?P<theirs>.*)",
    re.DOTALL,
)

OpenChannel = Callable[[], Awaitable[Channel]]


class Declarer:
    """Declares over channels that it opens itself: each refusal costs the channel it came over."""

    def __init__(self, open_channel: OpenChannel) -> None:
        self._open_channel = open_channel
        self._channel: Channel | None = None

    async def declare(self, layout: Layout) -> None:
        """Declare all of a layout. Raises TopologyMismatchError, or SettingsError where something is missing."""
        try:
            for exchange in layout.exchanges:
                await self._exchange(exchange)
            for queue in layout.queues:
                await self._queue(queue)
            for binding in layout.bindings:
                await self._bind(binding)
        finally:
            if self._channel is not None:
                await self._channel.close()

    async def _exchange(self, spec: ExchangeSpec) -> None:
        async def declare(channel: Channel, passive: bool) -> None:
            await channel.exchange_declare(
                spec.name,
                exchange_type=spec.kind,
                durable=True,
                passive=passive,
                arguments=dict(spec.arguments),
                timeout=DECLARE_LIMIT_S,
            )

        await self._declare_or_look(declare, f"exchange {spec.name!r}")

    async def _queue(self, spec: QueueSpec) -> None:
        async def declare(channel: Channel, passive: bool) -> None:
            await declare_queue(channel, spec, passive=passive)

        await self._declare_or_look(declare, f"queue {spec.name!r}")

    async def _bind(self, binding: Binding) -> None:
        try:
            await bind_queue(await self._opened(), binding)
        except ChannelAccessRefused:
            # Whoever may declare has bound it, too; there is no way to look.
            self._channel = None

    async def _declare_or_look(self, declare: Callable[[Channel, bool], Awaitable[None]], thing: str) -> None:
        try:
            await declare(await self._opened(), False)
        except ChannelAccessRefused:
            self._channel = None
        except ChannelPreconditionFailed as error:
            self._channel = None
            raise mismatch(str(error), thing) from error
        else:
            return
        try:
            await declare(await self._opened(), True)
        except (ChannelAccessRefused, ChannelNotFoundEntity) as error:
            self._channel = None
            raise SettingsError(
                f"The {thing} does not exist, and this user may not declare it.",
                suggestion="An administrator declares it, or grants the user the right to configure it.",
            ) from error

    async def _opened(self) -> Channel:
        if self._channel is None or self._channel.is_closed:
            self._channel = await self._open_channel()
        return self._channel


async def declare_queue(channel: Channel, spec: QueueSpec, *, passive: bool = False) -> None:
    """Declare one queue over an open channel."""
    await channel.queue_declare(
        spec.name,
        durable=not spec.is_exclusive,
        exclusive=spec.is_exclusive,
        passive=passive,
        arguments=dict(spec.arguments),
        timeout=DECLARE_LIMIT_S,
    )


async def bind_queue(channel: Channel, binding: Binding) -> None:
    """Bind one queue over an open channel."""
    await channel.queue_bind(binding.queue, binding.exchange, binding.pattern, timeout=DECLARE_LIMIT_S)


def mismatch(reply: str, thing: str) -> TopologyMismatchError:
    """The error of a 406: which argument differs, how, and what an operator can do."""
    found = _INEQUIVALENT.search(reply)
    if found is None:
        return TopologyMismatchError(
            f"The broker does not take our {thing}: {reply}.",
            suggestion="RabbitMQ 3.10 or newer is needed; `rolecall doctor` shows the version.",
        )
    return TopologyMismatchError(
        f"The {found['thing']} {found['name']!r} exists with another {found['argument']!r}: "
        f"ours is {found['ours'].strip()}, the broker has {found['theirs'].strip()}.",
        suggestion=(
            f"Delete that {found['thing']} once it is empty, or set ROLECALL_ENVIRONMENT to a name of its own."
        ),
    )

"""The door of a role process: its slots, and a consumer that lets in no more work than there are slots.

Prefetch alone would let a full worker hoard, since an acknowledged delivery makes room for the next one at once. So:

* the consumer's prefetch never exceeds the free slots, and
* whenever an acknowledgement could let in more than there are slots for, the consumer is cancelled *before* it;
  it comes back, with the prefetch that then fits, as soon as a slot is free.

With one slot that is: take, cancel, acknowledge, work, consume again. With many, half of the free slots are let in at
a time, so that acceptances overlap and the consumer is cancelled only when the process fills up.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import structlog

from bus.api import Bus, Consumer, Delivery, Settlement
from schemas.errors import RolecallError

log = structlog.get_logger()

# How long a delivery that came without a free slot (a reconnect can do that) is held before it is handed back. Not
# at once: the broker would hand it out again at once, and count that against its delivery limit.
HAND_BACK_S = 1.0
_RETRY_S = 0.5

Spawn = Callable[[Coroutine[Any, Any, None]], object]


@dataclass(slots=True, eq=False)
class _Subscription:
    """One life of the consumer. `open` counts its deliveries that nobody has promised to acknowledge yet."""

    prefetch: int
    consumer: Consumer | None = None
    open: int = 0


@dataclass(slots=True, eq=False)
class Ticket:
    """A delivery that came in, with the slot that is reserved for it (None: there was none)."""

    delivery: Delivery
    slot: int | None
    subscription: _Subscription
    is_counted: bool = True


class Door:
    """The slots and the consumer of one pool's queue. `on_ticket` gets every delivery and must settle it here."""

    def __init__(
        self,
        bus: Bus,
        queue: str,
        slots: int,
        *,
        on_ticket: Callable[[Ticket], Coroutine[Any, Any, None]],
        spawn: Spawn,
    ) -> None:
        self._bus = bus
        self._queue = queue
        self._slots = slots
        self._free = list(reversed(range(slots)))
        self._on_ticket = on_ticket
        self._spawn = spawn
        self._subscription: _Subscription | None = None
        self._shut_for: set[str] = {"starting"}
        self._is_left = False
        self._lock = asyncio.Lock()  # held over every change of the consumer
        self._changed = asyncio.Event()
        self._slot_freed = asyncio.Condition()

    @property
    def busy(self) -> int:
        """How many slots are taken."""
        return self._slots - len(self._free)

    def open(self, reason: str) -> None:
        """Take one reason for being shut away; the consumer comes back when none is left."""
        self._shut_for.discard(reason)
        self._changed.set()

    def shut(self, reason: str) -> None:
        """Let nothing in until this reason is taken away; the consumer goes soon (`shut_now`: before it returns)."""
        self._shut_for.add(reason)
        self._changed.set()

    async def shut_now(self, reason: str) -> None:
        """Let nothing in from here on."""
        self.shut(reason)
        async with self._lock:
            await self._cancel()

    def leave(self) -> None:
        """Nobody is behind the door any more: what still comes stays unsettled, and comes again to others."""
        self._is_left = True

    async def keep(self) -> None:
        """Hold the consumer to what the slots allow; runs until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                async with self._lock:
                    await self._adjust()
            except RolecallError as error:
                log.warning(
                    "The pool's queue cannot be consumed yet.", action="consume_retried", error=str(error)
                )
                await asyncio.sleep(_RETRY_S)
                self._changed.set()

    async def make_room(self, ticket: Ticket) -> None:
        """Call before acknowledging a delivery whose slot stays taken: cancels the consumer if that could overfill."""
        self._count_off(ticket)
        subscription = ticket.subscription
        if self._fits(subscription):
            return
        async with self._lock:
            if subscription is self._subscription and not self._fits(subscription):
                await self._cancel()
        self._changed.set()

    async def acknowledge_taken(self, ticket: Ticket) -> None:
        """Acknowledge a delivery whose work keeps the slot; `make_room` came before."""
        ticket.slot = None
        try:
            await self._bus.settle(ticket.delivery, Settlement.ACK)
        except RolecallError as error:
            # It comes again, and is known here by then.
            log.warning("An acknowledgement did not get through.", action="ack_failed", error=str(error))

    async def settle(self, ticket: Ticket, settlement: Settlement, reason: str = "") -> None:
        """End a delivery that needs no slot (any more)."""
        try:
            await self._bus.settle(ticket.delivery, settlement, reason)
        finally:
            self._count_off(ticket)
            if ticket.slot is not None:
                await self.release(ticket.slot)
                ticket.slot = None

    async def slot_for(self, ticket: Ticket) -> int | None:
        """The ticket's slot; where it has none, the next that is freed within a moment, or None."""
        if ticket.slot is None:
            async with self._slot_freed:
                try:
                    async with asyncio.timeout(HAND_BACK_S):
                        await self._slot_freed.wait_for(lambda: bool(self._free))
                except TimeoutError:
                    return None
                ticket.slot = self._free.pop()
        return ticket.slot

    async def release(self, slot: int) -> None:
        """The slot's work is over."""
        async with self._slot_freed:
            self._free.append(slot)
            self._slot_freed.notify()
        self._changed.set()

    async def _adjust(self) -> None:
        wanted = 0 if self._shut_for or not self._free else max(1, len(self._free) // 2)
        current = self._subscription
        # Growing back is worth a new consumer only where it doubles what overlaps.
        if current is not None and (self._shut_for or current.prefetch * 2 <= wanted):
            await self._cancel()
        if self._subscription is None and wanted:
            await self._subscribe(wanted)

    async def _subscribe(self, prefetch: int) -> None:
        subscription = _Subscription(prefetch)

        async def on_delivery(delivery: Delivery) -> None:
            self._let_in(subscription, delivery)

        self._subscription = subscription
        try:
            subscription.consumer = await self._bus.consume(self._queue, on_delivery, prefetch=prefetch)
        except BaseException:
            self._subscription = None
            raise

    async def _cancel(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is None or subscription.consumer is None:
            return
        try:
            await subscription.consumer.cancel()
        except RolecallError as error:
            # Without a connection there is no consumer either, and a cancelled one is not brought back.
            log.warning(
                "A consumer was gone before it was cancelled.", action="cancel_failed", error=str(error)
            )

    def _let_in(self, subscription: _Subscription, delivery: Delivery) -> None:
        """Only counts and hands over: a broker's callback is cancelled with its connection, our own task is not."""
        if self._is_left:
            return
        subscription.open += 1
        slot = self._free.pop() if self._free else None
        self._spawn(self._on_ticket(Ticket(delivery, slot, subscription)))

    def _fits(self, subscription: _Subscription) -> bool:
        """True if the free slots hold all that this consumer may still let in."""
        is_live = subscription is self._subscription
        return not is_live or len(self._free) >= subscription.prefetch - subscription.open

    def _count_off(self, ticket: Ticket) -> None:
        if ticket.is_counted:
            ticket.is_counted = False
            ticket.subscription.open -= 1

"""The relay: what was decided and written goes out, in order, and only then are the causing messages settled.

It stops for nothing: while the broker is away it tries the same batch again. Receivers know a repeated envelope by its
id. What was confirmed is reported back, to be marked with the next transaction.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from bus.api import Bus, Delivery, Exchange, TopologyMismatchError, UnroutableError
from schemas.errors import ContractError, RolecallError
from supervisor.minting import Posting

# Between two tries of a batch that the broker did not take.
RETRY_S = 0.5


@dataclass(slots=True)
class Batch:
    """Messages to publish, then deliveries to acknowledge."""

    postings: list[Posting] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)


OnSent = Callable[[str, str], None]  # outbox id, note


class Relay:
    """Publishes batches one after the other."""

    def __init__(self, bus: Bus, on_sent: OnSent) -> None:
        self._bus = bus
        self._on_sent = on_sent
        self._batches: asyncio.Queue[Batch] = asyncio.Queue()
        self._log = structlog.get_logger("supervisor.relay")

    def hand_over(self, batch: Batch) -> None:
        """Queue a batch."""
        self._batches.put_nowait(batch)

    async def drained(self) -> None:
        """Return when everything handed over so far has gone out."""
        await self._batches.join()

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            batch = await self._batches.get()
            try:
                await self._publish(batch.postings)
                if batch.deliveries:
                    await self._bus.settle_many(batch.deliveries)
            finally:
                self._batches.task_done()

    async def _publish(self, postings: Sequence[Posting]) -> None:
        left = list(postings)
        while left:
            results = await self._bus.publish_many([one.outgoing for one in left])
            again: list[Posting] = []
            for posting, error in zip(left, results, strict=True):
                if error is None:
                    self._on_sent(posting.message_id, "")
                elif isinstance(error, UnroutableError):
                    await self._unroutable(posting, again)
                elif isinstance(error, ContractError):
                    self._on_sent(posting.message_id, f"not sent: {error}")
                    self._log.error("A message could not be sent.", action="send_refused", error=str(error))
                elif isinstance(error, TopologyMismatchError):
                    raise error  # an operator decides; trying again would only hide it
                else:
                    again.append(posting)
            left = again
            if left:
                self._log.warning(
                    "The broker did not confirm; trying again.", action="publish_retried", count=len(left)
                )
                await asyncio.sleep(RETRY_S)

    async def _unroutable(self, posting: Posting, again: list[Posting]) -> None:
        """A work queue that is gone is declared again; an instance that is gone needs no orders."""
        outgoing = posting.outgoing
        if outgoing.exchange is Exchange.WORK:
            try:
                await self._bus.declare_pool(outgoing.key)
            except TopologyMismatchError:
                raise
            except RolecallError as error:  # the broker is away again
                self._log.warning("A queue is not declared yet.", action="declare_failed", error=str(error))
            again.append(posting)
        else:
            self._on_sent(posting.message_id, "unroutable: the receiver is gone")

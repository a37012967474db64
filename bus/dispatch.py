"""Hands the deliveries of one consumer to its callback: one at a time, in order of arrival, in a task of its own.

The task is ours because a library that runs callbacks in its own tasks cancels them when the connection is lost, in
the middle of whatever they do. One at a time, so that a callback may cancel its consumer and know that nothing else
of it is under way. A callback that raises has its delivery settled here: no delivery is left hanging.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from bus.api import Delivery, OnDelivery, PublishTimeoutError, Settlement
from schemas.errors import BrokerUnreachableError

_log = logging.getLogger(__name__)

# How long a closing consumer waits for the callback that is under way.
CLOSE_LIMIT_S = 5.0

Settle = Callable[[Delivery, Settlement, str], Awaitable[None]]


class Dispatcher:
    """The queue between a transport and a callback."""

    def __init__(self, name: str, on_delivery: OnDelivery, settle: Settle) -> None:
        self._name = name
        self._on_delivery = on_delivery
        self._settle = settle
        self._waiting: deque[Delivery] = deque()
        self._wakeup = asyncio.Event()
        self._stopped = False
        self._task = asyncio.create_task(self._run(), name=f"dispatch {name}")

    def put(self, delivery: Delivery) -> None:
        """Queue a delivery for the callback."""
        self._waiting.append(delivery)
        self._wakeup.set()

    def take_back(self) -> list[Delivery]:
        """The deliveries that the callback has not seen; it will not see them any more."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def stop(self) -> list[Delivery]:
        """End after the callback that is under way; returns what it has not seen."""
        self._stopped = True
        self._wakeup.set()
        return self.take_back()

    async def join(self) -> None:
        """Wait for the callback that is under way, with a limit; then cancel it. Harmless from inside the callback."""
        if self._task is asyncio.current_task():
            return
        done, _ = await asyncio.wait([self._task], timeout=CLOSE_LIMIT_S)
        if not done:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while not self._stopped:
            if not self._waiting:
                self._wakeup.clear()
                await self._wakeup.wait()
                continue
            delivery = self._waiting.popleft()
            try:
                await self._on_delivery(delivery)
            except Exception as error:
                await self._end(delivery, error)

    async def _end(self, delivery: Delivery, error: Exception) -> None:
        # A broker that was away is no fault of the message; anything else would only fail again.
        is_outage = isinstance(error, PublishTimeoutError | BrokerUnreachableError)
        settlement = Settlement.RETRY if is_outage else Settlement.PARK
        _log.error(
            "A delivery from %s was not handled, so it ends as %s.",
            delivery.queue,
            settlement.value,
            exc_info=error,
            extra={"action": "bus.callback_failed"},
        )
        try:
            await self._settle(delivery, settlement, f"Its receiver failed: {type(error).__name__}: {error}")
        except Exception:
            _log.exception("The delivery could not be settled either; the broker hands it out again.")

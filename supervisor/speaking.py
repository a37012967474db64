"""What the supervisor says without writing it down: orders to instances, its own probe, pictures for watchers.

All of it may be lost: a heartbeat brings the order again, the next probe follows, and a picture is in the journal.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

import structlog

from bus.api import Bus, Exchange, Outgoing
from bus.topology import control_key
from schemas.errors import ContractError, RolecallError
from schemas.messages import ActionStopped, AnnouncementWanted, ProbeSent, RoleRested, TaskProgressed
from supervisor.fleet import Order
from supervisor.minting import Mint
from supervisor.picture import picture
from supervisor.saga.state import TaskState

# Older pictures tell nothing.
FEED_TTL_MS = 10_000


class Voice:
    """Publishes in the background; what cannot be delivered is dropped."""

    def __init__(self, bus: Bus, mint: Mint) -> None:
        self._bus = bus
        self._mint = mint
        self._under_way: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger("supervisor")

    def probe(self, token: str, at: int) -> None:
        """Send the supervisor's own message to itself, if it can go out now."""
        if self._bus.is_connected:
            body = ProbeSent(token=token).model_dump()
            self._say(Exchange.EVENTS, "probe.sent.supervisor", "probe.sent", body, task="probe", at=at)

    def order(self, orders: Iterable[Order], at: int) -> None:
        """Tell instances to stop an attempt, to announce themselves, or to rest."""
        for one in orders:
            try:
                key = control_key(one.pool, one.instance)
            except ContractError:  # a heartbeat may claim any pool
                continue
            if one.announce:
                self._say(
                    Exchange.CONTROL,
                    key,
                    "announcement.wanted",
                    AnnouncementWanted().model_dump(),
                    task="fleet",
                    at=at,
                )
            elif one.stop is not None:
                stopped = ActionStopped(action_id=one.stop[0], attempt=one.stop[1], reason=one.reason)
                self._say(Exchange.CONTROL, key, "action.stopped", stopped.model_dump(), task="fleet", at=at)
            elif one.rest_s:
                self._log.warning(
                    "An instance rests.", action="instance_rests", instance=one.instance, reason=one.reason
                )
                rested = RoleRested(seconds=one.rest_s, reason=one.reason)
                self._say(Exchange.CONTROL, key, "role.rested", rested.model_dump(), task="fleet", at=at)

    def progress(self, state: TaskState, at: int) -> None:
        """Show watchers how the task stands."""
        body = TaskProgressed(progress=picture(state, at)).model_dump(mode="json")
        self._say(
            Exchange.FEED, state.task, "task.progressed", body, task=state.task, at=at, ttl_ms=FEED_TTL_MS
        )

    async def close(self) -> None:
        """Let go of what is still under way."""
        for task in tuple(self._under_way):
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _say(
        self,
        exchange: Exchange,
        key: str,
        kind: str,
        body: dict[str, Any],
        *,
        task: str,
        at: int,
        ttl_ms: int | None = None,
    ) -> None:
        envelope = self._mint.envelope(kind, body, task=task, at=at, ttl_ms=ttl_ms)
        self._start(self._bus.publish(Outgoing(exchange, key, envelope)))

    def _start(self, publish: Coroutine[Any, Any, None]) -> None:
        async def quietly() -> None:
            try:
                await publish
            except RolecallError as error:
                self._log.debug("Not delivered.", action="said_in_vain", error=str(error))

        task = asyncio.create_task(quietly())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

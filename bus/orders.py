"""Orders: what the supervisor tells one process through its control queue, and what the process does about it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog
from pydantic import BaseModel

from bus.answers import ids_of
from bus.api import Bus, Delivery, Settlement
from bus.attempts import AttemptTable, Stop
from bus.door import Door, Spawn
from bus.stopping import StopSignal
from schemas.envelope import Envelope
from schemas.errors import RolecallError
from schemas.handoff import Failure
from schemas.messages import ActionStopped, AnnouncementWanted, LeaseGranted, RoleDrained, RoleRested
from schemas.words import Outcome

log = structlog.get_logger()

# A supervisor that means longer says it again; one that is gone must not idle a fleet.
LONGEST_REST_S = 3_600.0


@dataclass(slots=True)
class Orders:
    """Carries out orders for one role process."""

    bus: Bus
    table: AttemptTable
    door: Door
    stop: StopSignal
    want_announcement: Callable[[], Awaitable[None]]
    spawn: Spawn
    _rest: int = field(default=0, init=False)
    _resting: bool = field(default=False, init=False)

    @property
    def is_resting(self) -> bool:
        """True while an order to rest holds."""
        return self._resting

    async def take(self, delivery: Delivery) -> None:
        """Carry out one order and settle it; what is no order of the supervisor is parked."""
        envelope = delivery.envelope
        fault = delivery.fault
        if fault is None and envelope is not None:
            fault = _not_from_the_supervisor(envelope) or await self._obey(envelope, delivery.body)
        if fault is not None:
            log.warning("A message in the control queue is parked: %s", fault, action="order_parked")
        try:
            await self.bus.settle(delivery, Settlement.ACK if fault is None else Settlement.PARK, fault or "")
        except RolecallError as error:
            log.warning("An order could not be settled.", action="settle_failed", error=str(error))

    async def _obey(self, envelope: Envelope, order: BaseModel | None) -> str | None:
        """Do what is said; returns what is wrong with it, if anything."""
        match order:
            case LeaseGranted():
                self._grant(order)
            case ActionStopped():
                log.info("Told to stop work: %s", order.reason, action="work_stopped", **ids_of(envelope))
                failure = Failure(code="stopped", message=order.reason)
                for one in self.table.named(order.action_id, order.attempt):
                    one.end_with(Stop(Outcome.CANCELED, failure))
            case RoleRested():
                log.warning("Told to rest for %g s: %s", order.seconds, order.reason, action="role_rested")
                self._rest += 1
                self.spawn(self._rest_for(min(max(0.0, order.seconds), LONGEST_REST_S), self._rest))
            case RoleDrained():
                self.stop.drain(order.reason)
            case AnnouncementWanted():
                await self.want_announcement()
            case _:
                return f"{envelope.kind!r} is no order."
        return None

    def _grant(self, order: LeaseGranted) -> None:
        for one in self.table.named(order.action_id, order.attempt):
            if one.action.nonce == order.nonce:
                one.leased.set()

    async def _rest_for(self, seconds: float, number: int) -> None:
        """Shut the door for a while; a later order to rest takes over the end of it."""
        self._resting = True
        self.door.shut("resting")
        await asyncio.sleep(seconds)
        if number == self._rest:
            self._resting = False
            self.door.open("resting")


def _not_from_the_supervisor(envelope: Envelope) -> str | None:
    if envelope.sender.role == "supervisor":
        return None
    return f"Orders come from the supervisor, not from {envelope.sender.role!r}."

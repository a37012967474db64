"""A stage for one role process: the test plays the supervisor, and a real runtime serves over a real bus."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic import BaseModel

from bus.api import Bus, Delivery, Exchange, Outgoing, Settlement
from bus.grants import SigningKey
from bus.runtime import RoleSpec, serve
from bus.stopping import StopSignal
from bus.topology import control_key
from bus.workers import Workers
from schemas import clock
from schemas.action import Action
from schemas.envelope import Envelope
from schemas.handoff import Handoff
from schemas.messages import ActionHandoff
from tests.broker.worlds import World
from tests.role_builders import KEY, LIMIT_S, POOL, SPEC, SUPERVISOR, granted, work_envelope

INSTANCE = "host-7-7"


class RoleStage:
    """What the supervisor hears and says. `heard` holds every event and heartbeat in order of arrival."""

    def __init__(self, world: World, bus: Bus) -> None:
        self.world = world
        self.bus = bus
        self.heard: list[Envelope] = []
        self.topology = world.topology
        self._more = asyncio.Condition()

    async def listen(self) -> None:
        """Consume what the supervisor consumes; the pool's queue is there, so that work can come first."""
        await self.bus.declare_pool(POOL)
        for queue in (self.topology.supervisor, self.topology.heartbeat):
            await self.bus.consume(queue, self._hear, prefetch=100)

    @asynccontextmanager
    async def role(
        self,
        workers: Workers,
        spec: RoleSpec = SPEC,
        *,
        stop: StopSignal | None = None,
        settled: bool = True,
        bus: Bus | None = None,
        **options: Any,
    ) -> AsyncIterator["RoleProcess"]:
        """A role process that serves within this; at the end it is told to leave at once, if it did not before."""
        stop = stop or StopSignal()
        bus = bus or await self.world.bus(INSTANCE)
        told: dict[str, Any] = {"public_key": KEY.public_key, "instance": INSTANCE, "heartbeat_s": 0.05}
        serving = asyncio.create_task(serve(spec, bus, workers, stop=stop, **(told | options)))
        try:
            if settled:
                await self.event("role.announced")
            yield RoleProcess(bus, serving, stop)
        finally:
            stop.at_once("the test is over")
            await asyncio.wait({serving}, timeout=LIMIT_S)
            await bus.close()
        serving.result()

    async def send_work(
        self, one: Action, *, key: SigningKey = KEY, start_by: int = 2**60, **changes: Any
    ) -> Envelope:
        """Publish work as the supervisor does: the action for this environment, granted, in an envelope."""
        one = one.model_copy(update={"environment": self.bus.environment})
        told = {
            "environment": self.bus.environment,
            "message_id": clock.new_id(),
            "created_at": clock.now_us(),
        }
        envelope = work_envelope(one, granted(one, key=key, start_by=start_by), **(told | changes))
        await self.publish(Exchange.WORK, one.pool, envelope)
        return envelope

    async def order(self, kind: str, body: BaseModel, *, role: str = "supervisor") -> None:
        """Tell the role process something."""
        envelope = Envelope(
            environment=self.bus.environment,
            message_id=clock.new_id(),
            correlation_id="orders",
            kind=kind,
            sender=SUPERVISOR.model_copy(update={"role": role}),
            created_at=clock.now_us(),
            body=body.model_dump(),
        )
        await self.publish(Exchange.CONTROL, control_key(POOL, INSTANCE), envelope)

    async def publish(self, exchange: Exchange, key: str, envelope: Envelope) -> None:
        await self.bus.publish(Outgoing(exchange, key, envelope))

    async def event(
        self, kind: str, count: int = 1, where: Callable[[Envelope], bool] = lambda _: True
    ) -> Envelope:
        """The message number `count` (from 1) of this kind, once it is heard."""
        async with asyncio.timeout(LIMIT_S), self._more:
            await self._more.wait_for(lambda: len(self.said(kind, where)) >= count)
        return self.said(kind, where)[count - 1]

    async def heartbeat(self, where: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The body of a heartbeat from now on for which this is true."""
        known = len(self.said("role.heartbeat"))

        def found() -> list[dict[str, Any]]:
            return [one.body for one in self.said("role.heartbeat")[known:] if where(one.body)]

        async with asyncio.timeout(LIMIT_S), self._more:
            await self._more.wait_for(lambda: bool(found()))
        return found()[0]

    async def handoff(self, count: int = 1) -> Handoff:
        """The handoff number `count`, once it is heard."""
        return ActionHandoff.model_validate((await self.event("action.handoff", count)).body).handoff

    def said(self, kind: str, where: Callable[[Envelope], bool] = lambda _: True) -> list[Envelope]:
        """What was heard of this kind."""
        return [one for one in self.heard if one.kind == kind and where(one)]

    async def parked(self) -> Delivery:
        """The first dead letter, once it is there."""
        arrived: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()

        async def on_delivery(delivery: Delivery) -> None:
            await self.bus.settle(delivery, Settlement.ACK)
            if not arrived.done():
                arrived.set_result(delivery)

        consumer = await self.bus.consume(self.topology.dead, on_delivery, prefetch=1)
        try:
            async with asyncio.timeout(LIMIT_S):
                return await arrived
        finally:
            await consumer.cancel()

    async def _hear(self, delivery: Delivery) -> None:
        assert delivery.envelope is not None, delivery.fault
        self.heard.append(delivery.envelope)
        await self.bus.settle(delivery, Settlement.ACK)
        async with self._more:
            self._more.notify_all()


class RoleProcess:
    """The role process on the stage."""

    def __init__(self, bus: Bus, serving: "asyncio.Task[None]", stop: StopSignal) -> None:
        self.bus = bus
        self.serving = serving
        self.stop = stop

    async def ended(self) -> None:
        """Returns once serve() has returned."""
        async with asyncio.timeout(LIMIT_S):
            await asyncio.wait({self.serving})
        self.serving.result()

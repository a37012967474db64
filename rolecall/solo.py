"""Solo: supervisor and all roles as tasks in one process on the memory bus, for a machine without RabbitMQ.

The same code does the same work in the same order of landing, so the commit ids are the same. What computes still runs
in child processes, one a slot; the journal is the environment's own, so everything can be looked up afterwards.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING

from rich.console import Console

from bus.instance import instance_name
from bus.log_sinks import Alarms
from bus.logs import logging_to
from bus.memory import MemoryBus
from bus.memory_broker import MemoryBroker
from bus.program import Build
from bus.runtime import serve
from bus.settings import RoleSettings, Settings
from bus.stopping import StopSignal
from rolecall.client.line import Line, line_on
from rolecall.client.order import Order
from schemas.envelope import Sender
from schemas.version import VERSION
from supervisor.house import House, opened_house
from supervisor.hub_work import HubWork
from supervisor.loop import Supervisor
from supervisor.minting import Mint
from workspace.hub import Hub

if TYPE_CHECKING:
    from rolecall.client.running import How

ROLES = ("planner", "executor", "reviewer", "tester")
# Nothing comes from elsewhere, so a role that is not heard is busy, not lost.
HEARTBEAT_S = 1.0
# What the supervisor still has to write when the task is over.
END_LIMIT_S = 20.0


def run_solo(order: Order, settings: Settings, how: "How", console: Console) -> int:
    """Run an order to its end; returns the exit code."""
    console.print("Solo: without RabbitMQ, every role runs in this one process.", style="dim")
    process = f"solo-{os.getpid()}"
    with logging_to(
        settings.state_dir / "logs", process, level=settings.log_level, terminal=Alarms(console.file)
    ):
        return asyncio.run(_run(order, settings, how, console))


async def _run(order: Order, settings: Settings, how: "How", console: Console) -> int:
    from rolecall.client.running import see_through

    slots = how.executors or max(2, min(4, os.cpu_count() or 1))
    async with solo_stack(settings, slots=slots) as line:
        return await see_through(order, settings, how, console, line, lambda: True)


@asynccontextmanager
async def solo_stack(settings: Settings, *, slots: int) -> AsyncIterator[Line]:
    """Everything running in this process; yields a client's line to it."""
    broker = MemoryBroker()
    async with AsyncExitStack() as stack:
        house = stack.enter_context(opened_house(settings.state_dir))
        hub = stack.enter_context(Hub.open(house.hub))
        await stack.enter_async_context(_supervisor(settings, house, hub, broker))
        for role in ROLES:
            await stack.enter_async_context(_role(role, settings, house, broker, slots=slots))
        bus = MemoryBus(broker, settings.environment, instance=instance_name("client"))
        await bus.start()
        stack.push_async_callback(bus.close)
        yield line_on(bus)


@asynccontextmanager
async def _supervisor(
    settings: Settings, house: House, hub: Hub, broker: MemoryBroker
) -> AsyncIterator[None]:
    instance = instance_name("supervisor")
    bus = MemoryBus(broker, settings.environment, instance=instance)
    await bus.start()
    sender = Sender(role="supervisor", instance=instance, version=VERSION)
    supervisor = Supervisor(
        bus=bus,
        journal=house.journal,
        hub=HubWork(hub),
        mint=Mint(settings.environment, sender, house.key),
        epoch=house.epoch,
    )
    stop = asyncio.Event()
    running = asyncio.create_task(supervisor.run(stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait({running}, timeout=END_LIMIT_S)
        running.cancel()
        await bus.close()


@asynccontextmanager
async def _role(
    role: str, settings: Settings, house: House, broker: MemoryBroker, *, slots: int
) -> AsyncIterator[None]:
    build: Build = import_module(f"{role}.__main__").build
    mine = {field.name: getattr(settings, field.name) for field in fields(Settings)}
    mine |= {"hub": str(house.hub), "public_key": house.key.public_key}
    role_settings = RoleSettings(**mine, role=role, slots=slots if role in ("executor", "reviewer") else 1)
    spec, workers = build(role_settings)
    instance = instance_name(role)
    bus = MemoryBus(broker, settings.environment, instance=instance)
    await bus.start()
    stop = StopSignal()
    serving = asyncio.create_task(
        serve(
            spec,
            bus,
            workers,
            public_key=house.key.public_key,
            instance=instance,
            stop=stop,
            heartbeat_s=HEARTBEAT_S,
        )
    )
    try:
        yield
    finally:
        stop.at_once("the run is over")
        with suppress(asyncio.CancelledError):
            await asyncio.wait({serving}, timeout=END_LIMIT_S)
        serving.cancel()
        await workers.close()
        await bus.close()

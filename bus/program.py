"""The frame of a process of ours: options, log, metrics, signals, the bus, and the exit code it ends with.

    def build(settings: RoleSettings) -> tuple[RoleSpec, Workers]: ...

    if __name__ == "__main__":
        sys.exit(run_role("executor", build))

Exit codes: 0 drained, 1 stopped at once or failed, 2 a setting is wrong, 6 the broker is not reachable at the start.
A broker that goes away later is waited for.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import structlog

from bus.answers import FIRST_RETRY_S
from bus.api import Bus
from bus.instance import instance_name
from bus.log_sinks import Terminal
from bus.logs import logging_to
from bus.metrics import Metrics, metrics_endpoint
from bus.runtime import Patience, RoleSpec, serve
from bus.settings import RoleSettings, role_settings
from bus.stopping import StopSignal, parent_watched, signals_to
from bus.workers import Workers
from schemas.errors import BrokerUnreachableError, ExitCode, RolecallError
from schemas.version import VERSION

log = structlog.get_logger()

# Somebody waits for the start, so a broker that is there is noticed soon.
LONGEST_START_PAUSE_S = 0.5
# A broker that is started together with us takes some seconds; one that stays away longer is news, and told once.
START_GRACE_S = 20.0


@dataclass(frozen=True, slots=True)
class Program:
    """What a process has when its own part begins: connected, logging, and listening to signals."""

    settings: RoleSettings
    bus: Bus
    stop: StopSignal
    metrics: Metrics
    instance: str


MakeBus = Callable[[RoleSettings, str], Bus]
Main = Callable[[Program], Awaitable[None]]
Build = Callable[[RoleSettings], tuple[RoleSpec, Workers]]


def run_role(role: str, build: Build, argv: Sequence[str] | None = None) -> int:
    """`python -m <role>`: serve what `build` makes of the settings, until told to stop. Returns the exit code."""

    async def main(program: Program) -> None:
        spec, workers = build(program.settings)
        try:
            await serve(
                spec,
                program.bus,
                workers,
                public_key=program.settings.supervisor_key,
                instance=program.instance,
                stop=program.stop,
                patience=Patience(drain_s=program.settings.drain_s),
                metrics=program.metrics,
            )
        finally:
            await workers.close()

    try:
        settings = role_settings(role, argv)
    except RolecallError as error:
        sys.stderr.write(f"{role}: {error}\n")
        return error.exit_code
    return run_program(settings, main)


def run_program(settings: RoleSettings, main: Main, *, make_bus: MakeBus | None = None) -> int:
    """Run a process's own part inside the frame; returns the exit code."""
    stop = StopSignal()
    try:
        with logging_to(
            settings.state_dir / "logs",
            f"{settings.role}-{os.getpid()}",
            level=settings.log_level,
            terminal=Terminal(sys.stderr),
        ):
            return _run_logged(settings, main, stop, make_bus or amqp_bus)
    except RolecallError as error:  # the log itself could not be opened
        sys.stderr.write(f"{settings.role}: {error}\n")
        return error.exit_code


def amqp_bus(settings: RoleSettings, instance: str) -> Bus:
    """The bus of these settings."""
    from bus.amqp import AmqpBus  # imported here: a process on the memory bus does without

    return AmqpBus(settings.environment, settings.broker_urls, instance=instance)


def _run_logged(settings: RoleSettings, main: Main, stop: StopSignal, make_bus: MakeBus) -> int:
    try:
        asyncio.run(_run(settings, main, stop, make_bus))
    except Exception as error:
        failure = error
    else:
        return ExitCode.FAILED if stop.is_at_once else ExitCode.OK
    known = _known(failure)
    if known is None:
        log.error("Cannot go on: a fault of ours.", action="process_failed", exc_info=failure)
        return ExitCode.FAILED
    log.error("Cannot go on: %s", known, action="process_failed")
    return known.exit_code


async def _run(settings: RoleSettings, main: Main, stop: StopSignal, make_bus: MakeBus) -> None:
    instance = instance_name()
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        stack.enter_context(signals_to(stop))
        await stack.enter_async_context(parent_watched(settings.parent_pid, stop))
        if settings.metrics_port is not None:
            port = stack.enter_context(metrics_endpoint(metrics, settings.metrics_port))
            log.info("Measures are at http://127.0.0.1:%d/metrics.", port, action="metrics_served", port=port)
        bus = await stack.enter_async_context(_connected(settings, instance, stop, make_bus))
        if bus is not None:
            log.info(
                "Connected as %s.", instance, action="process_started", instance=instance, version=VERSION
            )
            await main(Program(settings, bus, stop, metrics, instance))


@asynccontextmanager
async def _connected(
    settings: RoleSettings, instance: str, stop: StopSignal, make_bus: MakeBus
) -> AsyncIterator[Bus | None]:
    """The started bus, waited for as long as the settings say; None if told to stop meanwhile."""
    bus = make_bus(settings, instance)
    starting = asyncio.create_task(_start(bus, settings.wait_for_broker_s))
    stopped = asyncio.create_task(stop.wait_draining())
    try:
        await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            yield bus
        else:
            yield None
    finally:
        for task in (starting, stopped):
            task.cancel()
        await asyncio.wait({starting, stopped})
        await bus.close()


async def _start(bus: Bus, wait_s: float) -> None:
    loop = asyncio.get_running_loop()
    until, grace = loop.time() + wait_s, loop.time() + START_GRACE_S
    pause_s = FIRST_RETRY_S
    is_told = False
    while True:
        try:
            return await bus.start()
        except BrokerUnreachableError as error:
            if loop.time() >= until:
                raise
            is_news = not is_told and loop.time() >= grace
            tell = log.warning if is_news else log.debug
            tell("Waiting for the broker: %s", error, action="broker_awaited")
            is_told = is_told or is_news
        await asyncio.sleep(min(pause_s, max(0.0, until - loop.time())))
        pause_s = min(pause_s * 2, LONGEST_START_PAUSE_S)


def _known(error: BaseException) -> RolecallError | None:
    """The error of ours that a task group wrapped, if it is one."""
    if isinstance(error, BaseExceptionGroup):
        return next((known for one in error.exceptions if (known := _known(one)) is not None), None)
    return error if isinstance(error, RolecallError) else None

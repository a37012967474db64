"""`rolecall run`: checks the order, finds or starts what runs it, submits, watches, reports, delivers."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from rich.console import Console

from bus.connection_file import live_connection
from bus.settings import Settings
from rolecall.client import asking
from rolecall.client.attending import Attendance, OutdatedError, canceling, to_the_end
from rolecall.client.following import Feed
from rolecall.client.line import Line, connected
from rolecall.client.moving_base import MOST_TIMES, announcement, order_again
from rolecall.client.order import Order, Wishes, make_order
from rolecall.client.reading import known_contracts, make_hub_for, opened_hub
from rolecall.client.submission import submit
from rolecall.client.terminal import is_conversation
from rolecall.processes.joining import joined
from rolecall.processes.rabbitmq_install import find_rabbitmq
from schemas.errors import ExitCode, SettingsError
from workspace.job import SandboxMode
from workspace.sandbox import check_sandbox
from workspace.source import Base

NOTHING_STARTED = "Nothing was started."


@dataclass(frozen=True, slots=True)
class How:
    """How the user wants it run. `executors` counts only if a stack has to be started.

    `follow` does the order again if the branch that it started from moves.
    """

    executors: int | None = None
    yes: bool = False
    solo: bool = False
    deliver: bool = True
    as_json: bool = False
    follow: bool = True


def run(wishes: Wishes, settings: Settings, how: How, console: Console) -> int:
    """The whole run; returns the exit code."""
    order = make_order(wishes, known_contracts(settings))
    asking.show(order, console)
    if not how.yes and is_conversation() and not asking.confirmed():
        console.print(NOTHING_STARTED)
        return ExitCode.CANCELED
    if settings.hub is None and settings.broker_url is None:
        make_hub_for(order.source, settings)
    if how.solo or _must_be_solo(settings):
        check_tests_can_run(settings)
        from rolecall.solo import run_solo

        return run_solo(order, settings, how, console)
    with _served(settings, how, lambda text: console.print(text, style="dim")) as (
        joined_settings,
        is_served,
    ):
        return asyncio.run(_through(order, joined_settings, how, console, is_served))


Served = tuple[Settings, Callable[[], bool]]


@contextmanager
def _served(settings: Settings, how: How, say: Callable[[str], None]) -> Iterator[Served]:
    """What serves the order while this lasts: a stack elsewhere that was named in full, or this environment's own.

    Yields the settings that lead there, and how to find out that it is gone.
    """
    stack = live_connection(settings.state_dir)
    is_elsewhere = settings.broker_url is not None and (
        stack is None or stack.broker_url != settings.broker_url
    )
    if is_elsewhere:
        asyncio.run(_reach_broker(settings))  # said at once, and not after the start of everything else
        if settings.hub is not None:
            yield settings, lambda: True
            return
        if stack is not None:
            raise SettingsError(
                f"The stack of environment {settings.environment!r} runs on another broker.",
                suggestion="Leave --broker out to use it, or name another --environment.",
            )
    if stack is None:
        check_tests_can_run(settings)
    with joined(settings, _up_options(settings, how), say=say) as connection:
        place = replace(settings, broker_url=connection.broker_url, hub=connection.hub)
        yield place, lambda: live_connection(place.state_dir) is not None


async def _reach_broker(settings: Settings) -> None:
    async with connected(settings):
        return


async def _through(
    order: Order, settings: Settings, how: How, console: Console, is_served: Callable[[], bool]
) -> int:
    async with connected(settings) as line:
        return await see_through(order, settings, how, console, line, is_served)


async def see_through(
    order: Order, settings: Settings, how: How, console: Console, line: Line, is_served: Callable[[], bool]
) -> int:
    """Submit on an open line, watch, report, deliver; returns the exit code.

    If the branch that it started from moved meanwhile, the order is done again there, a few times at most.
    """
    for times_left in reversed(range(MOST_TIMES)):
        follows = how.follow and times_left > 0
        try:
            return await _see_through_once(order, settings, how, console, line, is_served, follows=follows)
        except OutdatedError as error:
            console.print(announcement(error.moved, order), style="yellow")
            order = order_again(order, error.moved)
    raise AssertionError("the last time delivers")


async def _see_through_once(
    order: Order, settings: Settings, how: How, console: Console, line: Line, is_served: Callable[[], bool],
    *, follows: bool,
) -> int:  # fmt: skip
    async with Feed(line.bus, order.task) as feed:
        with opened_hub(settings) as hub:
            await submit(order, line, hub)
        attendance = Attendance(
            task=order.task,
            recipe=order.recipe.recipe,
            settings=settings,
            line=line,
            console=console,
            source=order.source if how.deliver else None,
            branch=order.request.branch,
            base=Base(order.request.base, order.request.base_ref),
            is_served=is_served,
            as_json=how.as_json,
            follows=follows,
        )
        interrupts = canceling(line, order.task, console)
        return await to_the_end(attendance, feed, interrupts, left=ExitCode.CANCELED)


def check_tests_can_run(settings: Settings) -> None:
    """Raises SettingsError where tests could not be shut in on this machine, before anything is started."""
    check_sandbox(SandboxMode(str(settings.sandbox)))


def _must_be_solo(settings: Settings) -> bool:
    return settings.broker_url is None and find_rabbitmq() is None


def _up_options(settings: Settings, how: How) -> tuple[str, ...]:
    executors = ("--executors", str(how.executors)) if how.executors else ()
    return (*executors, "--sandbox", str(settings.sandbox), "--log-level", settings.log_level)

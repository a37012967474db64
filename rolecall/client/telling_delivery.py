"""Tells the supervisor that a branch was created, so that the report says so; delivered is delivered all the same."""

import getpass
from contextlib import suppress

from bus.settings import Settings
from rolecall.client.delivery import Delivered
from rolecall.client.line import Line, connected
from schemas.errors import RolecallError
from schemas.messages import TaskDelivered


async def tell_delivered(settings: Settings, task: str, delivered: Delivered, repository: str) -> None:
    """Say it on the bus of this environment, if there is one."""
    if settings.broker_url is None:
        return
    with suppress(RolecallError):
        async with connected(settings) as line:
            await say_delivered(line, task, delivered, repository)


async def say_delivered(line: Line, task: str, delivered: Delivered, repository: str) -> None:
    """Say it on an open line."""
    body = TaskDelivered(
        branch=delivered.branch, commit=delivered.commit, repository=repository, by=getpass.getuser()
    )
    await line.say("task.delivered", body, task)

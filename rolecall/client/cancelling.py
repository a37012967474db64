"""Asking for the end of a task; the wish is durable, also while no supervisor runs."""

import getpass

from bus.settings import Settings
from rolecall.client.line import Line, connected
from schemas.messages import TaskCancelRequested


async def cancel(settings: Settings, task: str, reason: str) -> None:
    """Connect and ask. Raises SettingsError (no broker is known) or BrokerUnreachableError."""
    async with connected(settings) as line:
        await ask_cancel(line, task, reason)


async def ask_cancel(line: Line, task: str, reason: str = "asked by the user") -> None:
    """Ask on an open line."""
    await line.say("task.cancel_requested", TaskCancelRequested(reason=reason, by=getpass.getuser()), task)

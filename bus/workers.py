"""Who does the work of a role: the interface that the runtime drives, and the one for work that is only I/O.

The other implementation, a warm child process per slot, is `workspace.children.ChildWorkers`.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from schemas.action import Action
from schemas.handoff import Handoff

OnNote = Callable[[str], None]
"""Takes a few words about how far the work is; the heartbeat carries the last ones."""

Handle = Callable[[Action, OnNote], Awaitable[Handoff]]


class Workers(Protocol):
    """Runs actions, one at a time in each slot (0 up to the number of slots)."""

    async def run(self, slot: int, action: Action, on_note: OnNote) -> Handoff:
        """Do the work. When cancelled, everything that it started is killed before CancelledError goes on.

        Raises WorkerLostError if what did the work died, another RolecallError if the work could not be done.
        """

    async def close(self) -> None:
        """End what is left of the workers."""


class InLoopWorkers:
    """Awaits an async function in the runtime's own loop: for work that waits for others and computes nothing.

    What computes would starve the heartbeats; that belongs into child processes.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def run(self, slot: int, action: Action, on_note: OnNote) -> Handoff:
        """Await the function; the slot makes no difference here."""
        return await self._handle(action, on_note)

    async def close(self) -> None:
        """Nothing is left over."""

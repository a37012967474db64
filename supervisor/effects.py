"""Effects in the hub: composing candidates and moving heads, outside the loop's turn; the outcome comes back as a fact.

An effect's outbox row stays unsent until its outcome is recorded, so a crash in between does it again.
"""

import asyncio
from collections.abc import Callable

import structlog

from schemas.clock import now_us
from supervisor.hub_work import HubWork
from supervisor.intake import Fact
from supervisor.minting import Effect
from supervisor.saga.commands import Compose, MoveHead
from supervisor.saga.messages import ComposeDone, HeadDone, Message
from workspace.hub import Composed

# The hub's disk may be full or its lock held; the effect is tried again until it is done or plainly impossible.
TRIES = 5
RETRY_S = 1.0


class Effects:
    """Runs effects and reports what came of them."""

    def __init__(self, hub: HubWork, report: Callable[[Fact], None]) -> None:
        self._hub = hub
        self._report = report
        self._running: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger("supervisor.effects")

    def start(self, effect: Effect) -> None:
        """Begin an effect."""
        task = asyncio.create_task(self._do(effect))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Let what runs end: it is short, and what is not reported is done again."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _do(self, effect: Effect) -> None:
        command = effect.command
        for attempt in range(1, TRIES + 1):
            try:
                if isinstance(command, Compose):
                    message: Message = await self._compose(effect.task, command)
                else:
                    message = await self._move(effect.task, command)
                break
            except Exception as error:  # whatever it was, the task has to hear of it
                self._log.warning(
                    "An effect in the hub failed.", action="effect_failed", task=effect.task, error=str(error)
                )
                message = _failed(command, f"the hub refused it: {error}")
                if attempt < TRIES:
                    await asyncio.sleep(RETRY_S * attempt)
        self._report(Fact(effect.task, message, sent=effect.message_id))

    async def _compose(self, task: str, command: Compose) -> ComposeDone:
        made = await self._hub.compose(task, command.base, command.results, command.message)
        if isinstance(made, Composed):
            return ComposeDone(now_us(), command.rule, command.generation, command.base, made.commit)
        return ComposeDone(now_us(), command.rule, command.generation, command.base, None, conflicts=made)

    async def _move(self, task: str, command: MoveHead) -> HeadDone:
        moved = await self._hub.move_head(task, command.old, command.new)
        return HeadDone(now_us(), command.new, moved)


def _failed(command: Compose | MoveHead, reason: str) -> Message:
    if isinstance(command, Compose):
        return ComposeDone(now_us(), command.rule, command.generation, command.base, None, reason=reason)
    return HeadDone(now_us(), command.new, moved=False, reason=reason)

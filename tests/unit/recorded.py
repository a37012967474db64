"""A saga world whose messages, events and commands go into a real journal, as the supervisor's loop has them.

They are written in one piece at the end: what a journal holds does not depend on how it was grouped.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bus.codec import encode
from bus.grants import SigningKey
from schemas.envelope import Envelope, Sender
from schemas.messages import ActionAccepted, ActionHandoff, TaskCancelRequested, TaskSubmitted
from schemas.words import Lane
from supervisor.journal.journal import Group, Journal, Row
from supervisor.journal.reader import JournalReader
from supervisor.leases import Leases
from supervisor.minting import Effect, Mint
from supervisor.projecting import record, task_row
from supervisor.saga.commands import Command
from supervisor.saga.messages import Accept, Cancel, HandOff, Message, Submit
from tests.unit.saga_world import World

ENVIRONMENT = "test"
JOURNAL_FILE = "journal.sqlite"


@dataclass
class Recorded(World):
    """Runs a task like `World`, and writes it down."""

    def __post_init__(self) -> None:
        sender = Sender(role="supervisor", instance="host-1-1", version="1")
        self.mint = Mint(ENVIRONMENT, sender, SigningKey.from_seed(b"\x01" * 32))
        self.leases = Leases()
        self.group = Group()
        self.number = 0

    def tell(self, message: Message) -> tuple[Command, ...]:
        """Decide, and write what one group of messages would have written."""
        before = len(self.events)
        commands = super().tell(message)
        group = self.group
        row = self._inbox_row(message)
        cause = None
        if row is not None:
            group.inbox.append(row)
            cause = str(row["message_id"])
        record(
            group, self.leases, self.state, tuple(self.events[before:]), message_id=cause, sent_at=message.at
        )
        for command in commands:
            minted, sent = self.mint.command(
                self.state.task, command, cause=cause, lane=Lane.INTERACTIVE, traceparent=None, at=self.at
            )
            group.outbox.append(sent)
            # An effect is done once its outcome is told; here it always is, and soon.
            sent_at = self.at if isinstance(minted, Effect) else self.at + 1
            group.sent.append({"message_id": minted.message_id, "at": sent_at, "note": ""})
        shown = task_row(self.state, self.at)
        if shown is not None:
            group.tasks[self.state.task] = shown
        return commands

    def _inbox_row(self, message: Message) -> Row | None:
        match message:
            case Submit():
                body: Any = TaskSubmitted(request=message.request)
                return self._row("task.submitted", "client", "client-1", body.model_dump(), message.at)
            case Cancel():
                body = TaskCancelRequested(reason=message.reason)
                return self._row("task.cancel_requested", "client", "client-1", body.model_dump(), message.at)
            case Accept():
                body = ActionAccepted(
                    action_id=message.action_id, attempt=message.attempt, nonce=message.nonce
                )
                return self._row(
                    "action.accepted", "executor", message.instance, body.model_dump(), message.at
                )
            case HandOff():
                body = ActionHandoff(handoff=message.handoff)
                return self._row(
                    "action.handoff",
                    "executor",
                    message.instance,
                    body.model_dump(),
                    message.at,
                    message_id=message.message_id,
                )
            case _:
                return None

    def _row(
        self, kind: str, role: str, instance: str, body: dict[str, Any], at: int, *, message_id: str = ""
    ) -> Row:
        self.number += 1
        envelope = Envelope(
            environment=ENVIRONMENT,
            message_id=message_id or f"message-{self.number}",
            correlation_id=self.state.task,
            kind=kind,
            sender=Sender(role=role, instance=instance, version="1"),
            created_at=at,
            body=body,
        )
        return {
            "message_id": envelope.message_id,
            "task": envelope.correlation_id,
            "kind": kind,
            "sender_role": role,
            "sender_instance": instance,
            "causation_id": None,
            "created_at": at,
            "received_at": at,
            "note": "",
            "raw": encode(envelope),
        }


@contextmanager
def journal_at(folder: Path) -> Iterator[Journal]:
    """An open journal in a state folder."""
    journal = Journal.open(folder / JOURNAL_FILE)
    try:
        yield journal
    finally:
        journal.close()


@contextmanager
def reading(folder: Path) -> Iterator[JournalReader]:
    """A reader of the journal in a state folder."""
    reader = JournalReader.open(folder)
    try:
        yield reader
    finally:
        reader.close()


@contextmanager
def recording(folder: Path, world: Recorded) -> Iterator[Recorded]:
    """All that this world does is in the journal of the folder afterwards."""
    with journal_at(folder) as journal:
        yield world
        journal.write(world.group)


def told(folder: Path, world: Recorded) -> Recorded:
    """The world after its task came to rest, all of it in the journal of this folder."""
    with recording(folder, world):
        world.submit()
        world.run()
    return world

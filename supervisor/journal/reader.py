"""Reading the journal while a supervisor writes it, or while none runs: short read-only transactions.

What is told at length is built elsewhere: `report` and `trace`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Engine, create_engine, select
from sqlalchemy.exc import OperationalError

from schemas.contracts import ContractDocument, parse_contract
from schemas.errors import ContractError, SettingsError
from schemas.lossless import load_json
from schemas.report import DeadLine, TaskLine, WorkerLine
from schemas.suggest import nearest
from schemas.task import TaskProgress
from schemas.words import TaskStatus
from supervisor.journal import tables as t
from supervisor.saga.events import EVENTS, Event, read_event

JOURNAL_FILE = "journal.sqlite"


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with the message that caused it."""

    event: Event
    message_id: str | None


@dataclass(frozen=True, slots=True)
class Letter:
    """A message of a task as inbox or outbox keep it. Times are microseconds UTC; `raw` is the packed envelope."""

    message_id: str
    kind: str
    direction: str
    sender: str
    key: str
    causation_id: str | None
    created_at: int
    received_at: int | None
    sent_at: int | None
    note: str
    raw: bytes


class JournalReader:
    """Read access to one environment's journal."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(cls, state_dir: Path) -> "JournalReader":
        """Raises SettingsError if there is no journal yet, or it cannot be read."""
        path = state_dir / JOURNAL_FILE
        if not path.exists():
            raise SettingsError(
                "There is no journal yet: nothing was ever submitted in this environment.",
                suggestion="Start with `rolecall run`, or name the environment (ROLECALL_ENVIRONMENT).",
            )
        read_only = {"mode": "ro", "uri": "true"}
        place = URL.create("sqlite", database=f"file:{quote(str(path))}", query=read_only)
        engine = create_engine(place, connect_args={"timeout": 10})
        try:
            with engine.connect() as connection:
                version = connection.execute(select(t.meta.c.value).limit(1)).first()
        except OperationalError as error:
            raise SettingsError(
                f"The journal cannot be read: {error.orig}.", suggestion="Check its permissions and the disk."
            ) from error
        if version is None:  # written last: the tables are still being made
            raise SettingsError("The journal is just being made.", suggestion="Try again in a moment.")
        return cls(engine)

    def close(self) -> None:
        """Let go of the file."""
        self._engine.dispose()

    def find(self, prefix: str) -> str:
        """The full id of the task with this prefix. Raises ContractError if there is none or several."""
        with self._engine.connect() as connection:
            names = list(connection.scalars(select(t.tasks.c.task).order_by(t.tasks.c.task.desc())))
        exact = [name for name in names if name == prefix]
        # The front of a UUIDv7 is its time, so people copy the end as well as the beginning.
        found = exact or [name for name in names if name.startswith(prefix) or name.endswith(prefix)]
        if len(found) == 1:
            return str(found[0])
        if found:
            shown = ", ".join(found[:5])
            raise ContractError(
                f"{prefix!r} fits {len(found)} tasks: {shown}.", suggestion="Give more of the id."
            )
        hint = nearest(prefix, names)
        raise ContractError(
            f"There is no task {prefix!r}.",
            suggestion=f"Did you mean {hint}?" if hint else "`rolecall list` shows them.",
        )

    def tasks(
        self, *, since_us: int | None = None, grep: str | None = None, state: TaskStatus | None = None
    ) -> list[TaskLine]:
        """Tasks, the newest first; `grep` looks in id, recipe, repository, submitter and reason."""
        query = select(t.tasks).order_by(t.tasks.c.accepted_at.desc(), t.tasks.c.task.desc())
        if since_us is not None:
            query = query.where(t.tasks.c.accepted_at >= since_us)
        if state is not None:
            query = query.where(t.tasks.c.status == str(state))
        with self._engine.connect() as connection:
            lines = [_task_line(dict(row)) for row in connection.execute(query).mappings()]
        return [line for line in lines if grep is None or grep.lower() in _searchable(line)]

    def progress(self, task: str) -> TaskProgress:
        """The last recorded picture of a task."""
        with self._engine.connect() as connection:
            data = connection.scalar(select(t.tasks.c.progress).where(t.tasks.c.task == task))
        if data is None:
            raise ContractError(f"There is no task {task!r}.", suggestion="`rolecall list` shows them.")
        return load_json(TaskProgress, data)

    def events(self, task: str) -> Iterator[Recorded]:
        """Everything that happened to a task, in order. Events of a newer release are passed over."""
        query = select(t.events.c.name, t.events.c.data, t.events.c.message_id)
        query = query.where(t.events.c.task == task).order_by(t.events.c.seq)
        with self._engine.connect() as connection:
            for name, data, message_id in connection.execute(query):
                if name in EVENTS:
                    yield Recorded(read_event(name, data), message_id)

    def letters(self, task: str) -> list[Letter]:
        """Every message of a task, in and out, by time."""
        with self._engine.connect() as connection:
            received = connection.execute(select(t.inbox).where(t.inbox.c.task == task)).mappings()
            found = [_incoming(dict(row)) for row in received]
            sent = connection.execute(select(t.outbox).where(t.outbox.c.task == task)).mappings()
            found += [_outgoing(dict(row)) for row in sent]
        return sorted(found, key=lambda one: (one.created_at, one.message_id))

    def letter(self, message_id: str) -> bytes | None:
        """The packed envelope of an incoming message."""
        with self._engine.connect() as connection:
            raw = connection.scalar(select(t.inbox.c.raw).where(t.inbox.c.message_id == message_id))
        return bytes(raw) if raw is not None else None

    def workers(self) -> list[WorkerLine]:
        """The processes in the roll call, as last heard."""
        query = select(t.workers.c.data).order_by(t.workers.c.role, t.workers.c.instance)
        with self._engine.connect() as connection:
            rows = [json.loads(data) for data in connection.scalars(query)]
        return [WorkerLine.model_validate(row["line"]) for row in rows]

    def contracts(self) -> list[ContractDocument]:
        """The contracts that processes in the roll call serve."""
        with self._engine.connect() as connection:
            rows = [json.loads(data) for data in connection.scalars(select(t.workers.c.data))]
        documents = [
            parse_contract(document, origin="an announced contract")
            for row in rows
            if row["line"]["state"] not in ("lost", "gone")
            for document in row["contracts"]
        ]
        return sorted({document.ref: document for document in documents}.values(), key=lambda one: one.ref)

    def dead(self) -> list[DeadLine]:
        """Parked messages, the newest first."""
        query = select(t.dead).order_by(t.dead.c.received_at.desc(), t.dead.c.id.desc())
        with self._engine.connect() as connection:
            rows = connection.execute(query).mappings()
            return [
                DeadLine(
                    id=row["id"],
                    task=row["task"],
                    kind=row["kind"],
                    reason=row["reason"],
                    queue=row["queue"],
                    received_at=row["received_at"],
                    size_bytes=len(row["raw"]),
                )
                for row in rows
            ]

    def dead_raw(self, dead_id: str) -> bytes:
        """The bytes of a parked message. Raises ContractError if there is none of this id."""
        with self._engine.connect() as connection:
            raw = connection.scalar(select(t.dead.c.raw).where(t.dead.c.id == dead_id))
        if raw is None:
            raise ContractError(
                f"There is no parked message {dead_id!r}.", suggestion="`rolecall dead list` shows them."
            )
        return bytes(raw)


def _task_line(row: dict[str, Any]) -> TaskLine:
    return TaskLine(
        task=row["task"],
        status=row["status"],
        recipe=row["recipe"],
        repository=row["repository"],
        submitted_by=row["submitted_by"],
        accepted_at=row["accepted_at"],
        ended_at=row["ended_at"],
        reason=row["reason"],
    )


def _searchable(line: TaskLine) -> str:
    return " ".join((line.task, line.recipe, line.repository, line.submitted_by, line.reason)).lower()


def _incoming(row: dict[str, Any]) -> Letter:
    return Letter(
        message_id=row["message_id"],
        kind=row["kind"],
        direction="in",
        sender=f"{row['sender_role']} {row['sender_instance']}",
        key="supervisor",
        causation_id=row["causation_id"],
        created_at=row["created_at"],
        received_at=row["received_at"],
        sent_at=None,
        note=row["note"],
        raw=row["raw"],
    )


def _outgoing(row: dict[str, Any]) -> Letter:
    return Letter(
        message_id=row["message_id"],
        kind=row["kind"],
        direction="out",
        sender="supervisor",
        key=row["key"],
        causation_id=None,
        created_at=row["created_at"],
        received_at=None,
        sent_at=row["sent_at"],
        note=row["note"],
        raw=row["raw"],
    )

"""Writing the journal: everything that one group of messages led to goes in with one transaction, or not at all.

One supervisor writes at a time: the state folder is locked, and each start takes the next epoch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, select
from sqlalchemy.exc import DatabaseError, OperationalError

from schemas.errors import SettingsError
from schemas.lossless import readable
from supervisor.journal import statements as st
from supervisor.journal import tables as t
from supervisor.saga.events import Event, read_event
from supervisor.saga.evolve import evolve
from supervisor.saga.moves import IllegalMoveError
from supervisor.saga.state import TaskState

Row = dict[str, Any]
LeaseKey = tuple[str, int, str]  # action, attempt, instance
# How long a writer waits for a reader of the same file before it gives up.
BUSY_TIMEOUT_MS = 10_000
_IDS_A_QUERY = 500
# SQLite's own limits: integers of 64 bits, texts in UTF-8. What a stranger sends is cut to fit, never a reason to stop.
_LARGEST_INT = 2**63 - 1


@dataclass(slots=True)
class Group:
    """The rows of one transaction.

    `sent` are outbox messages whose publish was confirmed; a lease of None has
    ended, a worker of None is gone from the list.
    """

    inbox: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    outbox: list[Row] = field(default_factory=list)
    tasks: dict[str, Row] = field(default_factory=dict)
    steps: list[Row] = field(default_factory=list)
    leases: dict[LeaseKey, Row | None] = field(default_factory=dict)
    workers: dict[str, Row | None] = field(default_factory=dict)
    dead: list[Row] = field(default_factory=list)
    sent: list[Row] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to write."""
        return not any(
            (self.inbox, self.events, self.outbox, self.tasks, self.steps, self.leases)
        ) and not any((self.workers, self.dead, self.sent))


@dataclass(frozen=True, slots=True)
class Replayed:
    """Tasks made again from their events; `faults` says why a task's record makes no state any more."""

    states: dict[str, TaskState] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)


class JournalUnavailableError(SettingsError):
    """The journal cannot be used now (locked, read-only, disk full); of a group that was written nothing is in it."""


class Journal:
    """The supervisor's record in one SQLite file."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(cls, path: Path) -> "Journal":
        """Open or create the journal. Raises SettingsError where it cannot be used, with the way out."""
        place = URL.create("sqlite", database=str(path))
        engine = create_engine(place, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})
        event.listen(engine, "connect", _prepare)
        journal = cls(engine)
        try:
            with engine.begin() as connection:
                t.metadata.create_all(connection)
                journal._check_version(connection, path)
        except (OperationalError, DatabaseError) as error:
            raise SettingsError(
                f"The journal {path.name} cannot be opened: {error.orig}.",
                suggestion="Check the disk and its permissions, or move the file away to start anew (its tasks stay in it).",
            ) from error
        path.chmod(0o600)
        return journal

    def close(self) -> None:
        """Let go of the file."""
        self._engine.dispose()

    def next_epoch(self) -> int:
        """A number higher than that of any supervisor before on this journal."""
        with self._engine.begin() as connection:
            known = connection.scalar(select(t.meta.c.value).where(t.meta.c.key == "epoch"))
            epoch = int(known or 0) + 1
            st.PUT_META.run(connection, [{"key": "epoch", "value": str(epoch)}])
        return epoch

    def write(self, group: Group) -> None:
        """Write a group in one transaction; on return it is on disk. Raises JournalUnavailableError."""
        if group.is_empty:
            return
        with _available("written"):
            self._write(group)

    def _write(self, group: Group) -> None:
        with self._engine.begin() as connection:
            _run(connection, st.ADD_TO_INBOX, group.inbox)
            _run(connection, st.ADD_EVENT, group.events)
            _run(connection, st.ADD_TO_OUTBOX, group.outbox)
            _run(connection, st.PUT_TASK, group.tasks.values())
            _run(connection, st.PUT_STEP, group.steps)
            _change_leases(connection, group.leases)
            _change_workers(connection, group.workers)
            _run(connection, st.ADD_DEAD, group.dead)
            sent = ({"id": one["message_id"], "at": one["at"], "remark": one["note"]} for one in group.sent)
            _run(connection, st.MARK_SENT, sent)

    def known(self, message_ids: Sequence[str]) -> frozenset[str]:
        """Those of the ids that the inbox holds already. Raises JournalUnavailableError."""
        found: set[str] = set()
        with _available("read"), self._engine.connect() as connection:
            for start in range(0, len(message_ids), _IDS_A_QUERY):
                part = message_ids[start : start + _IDS_A_QUERY]
                found.update(connection.scalars(st.KNOWN_IDS, {"ids": part}))
        return frozenset(found)

    def unfinished(self) -> Replayed:
        """The state of every task that has not ended, made again from its events."""
        with self._engine.connect() as connection:
            query = select(t.tasks.c.task).where(t.tasks.c.ended_at.is_(None))
            return _replayed(connection, connection.scalars(query).all())

    def load(self, tasks: Sequence[str]) -> Replayed:
        """The states of those of the tasks that are known here, ended or not."""
        with self._engine.connect() as connection:
            query = select(t.tasks.c.task).where(t.tasks.c.task.in_(tasks))
            return _replayed(connection, connection.scalars(query).all())

    def present(self) -> list[bytes]:
        """What was written of the processes that were there when the last supervisor ended."""
        query = select(t.workers.c.data).where(t.workers.c.state.not_in(("lost", "gone")))
        with self._engine.connect() as connection:
            return [bytes(data) for data in connection.scalars(query)]

    def unsent(self) -> list[Row]:
        """What the outbox still holds, oldest first."""
        query = select(t.outbox).where(t.outbox.c.sent_at.is_(None)).order_by(t.outbox.c.seq)
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _check_version(self, connection: Connection, path: Path) -> None:
        known = connection.scalar(select(t.meta.c.value).where(t.meta.c.key == "version"))
        if known is None:
            connection.execute(insert(t.meta).values(key="version", value=str(t.JOURNAL_VERSION)))
        elif int(known) > t.JOURNAL_VERSION:
            raise SettingsError(
                f"The journal {path.name} was written by a newer release (version {known}).",
                suggestion="Start that release, or use another environment (--environment NAME).",
            )


@contextmanager
def _available(done: str) -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        raise JournalUnavailableError(
            f"The journal cannot be {done}: {error.orig}.", suggestion="Check the disk and its permissions."
        ) from error


def replay(task: str, recorded: Iterable[Event]) -> TaskState:
    """The state after the recorded events: `evolve` alone, so that a newer `decide` never rewrites history."""
    state = TaskState(task)
    for one in recorded:
        state = evolve(state, one)
    return state


def _replayed(connection: Connection, tasks: Sequence[str]) -> Replayed:
    replayed = Replayed()
    for task in tasks:
        try:
            replayed.states[task] = replay(task, _events(connection, task))
        except (IllegalMoveError, LookupError, ValueError) as error:  # one record must not stop the others
            replayed.faults[task] = f"{type(error).__name__}: {error}"
    return replayed


def _events(connection: Connection, task: str) -> Iterable[Event]:
    query = select(t.events.c.name, t.events.c.data).where(t.events.c.task == task).order_by(t.events.c.seq)
    for name, data in connection.execute(query):
        yield read_event(name, data)


def _prepare(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",  # a confirmed command survives a power cut
        f"busy_timeout={BUSY_TIMEOUT_MS}",
        "foreign_keys=ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _run(connection: Connection, statement: st.Statement, rows: Iterable[Row]) -> None:
    statement.run(connection, [{name: _fitted(value) for name, value in row.items()} for row in rows])


def _fitted(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else readable(value)
    if isinstance(value, int) and abs(value) > _LARGEST_INT:
        return _LARGEST_INT if value > 0 else -_LARGEST_INT
    return value


def _change_leases(connection: Connection, leases: Mapping[LeaseKey, Row | None]) -> None:
    _run(connection, st.PUT_LEASE, (row for row in leases.values() if row is not None))
    ended = (key for key, row in leases.items() if row is None)
    _run(connection, st.END_LEASE, ({"action": a, "attempt_number": n, "holder": i} for a, n, i in ended))


def _change_workers(connection: Connection, workers: Mapping[str, Row | None]) -> None:
    _run(connection, st.PUT_WORKER, (row for row in workers.values() if row is not None))
    gone = (instance for instance, row in workers.items() if row is None)
    _run(connection, st.FORGET_WORKER, ({"holder": one} for one in gone))

"""The journal's statements, each built and turned into SQL once: to do that takes longer than to run it.

They go past SQLAlchemy's type conversions, which texts, integers and bytes do not need.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, insert, select, update
from sqlalchemy.dialects.sqlite import Insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.sql.dml import UpdateBase

from supervisor.journal import tables as t


class Statement:
    """A statement that is run for rows which all have the same names."""

    def __init__(self, clause: UpdateBase) -> None:
        self._clause = clause
        self._sql = ""
        self._names: tuple[str, ...] = ()

    def run(self, connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run it for each row; no rows, no statement."""
        listed = list(rows)
        if not listed:
            return
        if not self._sql:
            compiled = self._clause.compile(dialect=connection.dialect, column_keys=list(listed[0]))
            self._sql, self._names = str(compiled), tuple(compiled.positiontup or ())
        connection.exec_driver_sql(self._sql, [tuple(row[name] for name in self._names) for row in listed])


def _upsert(table: Table) -> Insert:
    statement = sqlite_insert(table)
    keys = [column.name for column in table.primary_key]
    changing = {column.name: statement.excluded[column.name] for column in table.c if column.name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changing)


ADD_EVENT = Statement(insert(t.events))
ADD_TO_OUTBOX = Statement(insert(t.outbox))
# What is there already stays: the same message may come twice.
ADD_TO_INBOX = Statement(sqlite_insert(t.inbox).on_conflict_do_nothing())
ADD_DEAD = Statement(sqlite_insert(t.dead).on_conflict_do_nothing())

PUT_META = Statement(_upsert(t.meta))
PUT_TASK = Statement(_upsert(t.tasks))
PUT_STEP = Statement(_upsert(t.steps))
PUT_LEASE = Statement(_upsert(t.leases))
PUT_WORKER = Statement(_upsert(t.workers))

END_LEASE = Statement(
    delete(t.leases).where(
        t.leases.c.action_id == bindparam("action"),
        t.leases.c.attempt == bindparam("attempt_number"),
        t.leases.c.instance == bindparam("holder"),
    )
)
FORGET_WORKER = Statement(delete(t.workers).where(t.workers.c.instance == bindparam("holder")))
MARK_SENT = Statement(
    update(t.outbox)
    .where(t.outbox.c.message_id == bindparam("id"))
    .values(sent_at=bindparam("at"), note=bindparam("remark"))
)
# Parameters: ids (a list).
KNOWN_IDS = select(t.inbox.c.message_id).where(t.inbox.c.message_id.in_(bindparam("ids", expanding=True)))

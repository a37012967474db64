"""The journal's tables (SQLAlchemy Core; SQLite by default). Times are integer microseconds UTC.

`inbox`, `events` and `outbox` are the record; `tasks`, `steps`, `leases` and `workers` are pictures of the present
that readers use. Heartbeats only touch `workers`.
"""

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, String, Table, Text

# Written into a new journal and checked at every start; a journal of a newer release is refused.
JOURNAL_VERSION = 1

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

inbox = Table(
    "inbox",
    metadata,
    Column("message_id", String(64), primary_key=True),
    Column("task", String(64), nullable=False),
    Column("kind", String(64), nullable=False),
    Column("sender_role", String(64), nullable=False),
    Column("sender_instance", String(200), nullable=False),
    Column("causation_id", String(64)),
    Column("created_at", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("note", Text, nullable=False, default=""),
    Column("raw", LargeBinary, nullable=False),
    Index("inbox_by_task", "task", "received_at"),
)

events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("task", String(64), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("name", String(64), nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("message_id", String(64)),
    Index("events_by_task", "task", "seq"),
)

outbox = Table(
    "outbox",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("message_id", String(64), nullable=False, unique=True),
    Column("task", String(64), nullable=False),
    Column("exchange", String(16), nullable=False),
    Column("key", String(300), nullable=False),
    Column("kind", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("sent_at", BigInteger),
    Column("note", Text, nullable=False, default=""),
    Column("raw", LargeBinary, nullable=False),
    Index("outbox_by_task", "task", "seq"),
    Index("outbox_unsent", "seq", sqlite_where=Column("sent_at").is_(None)),
)

tasks = Table(
    "tasks",
    metadata,
    Column("task", String(64), primary_key=True),
    Column("status", String(32), nullable=False),
    Column("recipe", Text, nullable=False),
    Column("repository", Text, nullable=False),
    Column("submitted_by", Text, nullable=False),
    Column("accepted_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Column("reason", Text, nullable=False, default=""),
    Column("progress", LargeBinary, nullable=False),
)

steps = Table(
    "steps",
    metadata,
    Column("task", String(64), primary_key=True),
    Column("step", String(200), primary_key=True),
    Column("status", String(32), nullable=False),
    Column("ended_at", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("action_id", String(64), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("instance", String(200), primary_key=True),
    Column("task", String(64), nullable=False),
    Column("since", BigInteger, nullable=False),
)

workers = Table(
    "workers",
    metadata,
    Column("instance", String(200), primary_key=True),
    Column("role", String(64), nullable=False),
    Column("pool", String(64), nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("version", String(64), nullable=False),
    Column("slots", Integer, nullable=False),
    Column("state", String(32), nullable=False),
    Column("heartbeat_at", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

dead = Table(
    "dead",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("task", String(64), nullable=False),
    Column("kind", String(64), nullable=False),
    Column("reason", Text, nullable=False),
    Column("queue", String(300), nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("raw", LargeBinary, nullable=False),
)

"""Writing the journal: one transaction or nothing, once each, and a start that takes up what was left."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from schemas.errors import SettingsError
from supervisor.journal.journal import Group, Journal, JournalUnavailableError, Replayed, Row
from supervisor.journal.tables import JOURNAL_VERSION
from supervisor.minting import Effect, Posting, reread
from supervisor.saga.commands import Compose, Dispatch, MoveHead
from supervisor.saga.messages import Cancel
from supervisor.saga.state import TaskState
from tests.unit.recorded import JOURNAL_FILE, Recorded, journal_at, recording
from tests.unit.saga_world import World, rule

FINE_TABLES = ("inbox", "events", "outbox", "tasks", "steps", "leases", "workers", "dead")


def rows(folder: Path, table: str) -> list[Row]:
    with sqlite3.connect(folder / JOURNAL_FILE) as connection:
        connection.row_factory = sqlite3.Row
        found = [dict(row) for row in connection.execute(f"select * from {table}")]
    connection.close()
    return found


def inbox_row(message_id: str, **changes: Any) -> Row:
    known = {
        "message_id": message_id,
        "task": "t",
        "kind": "action.handoff",
        "sender_role": "executor",
        "sender_instance": "host-1-1",
        "causation_id": None,
        "created_at": 1,
        "received_at": 2,
        "note": "",
        "raw": b"raw",
    }
    return known | changes


def outbox_row(message_id: str, **changes: Any) -> Row:
    known = {
        "message_id": message_id,
        "task": "t",
        "exchange": "work",
        "key": "executor",
        "kind": "action.requested",
        "created_at": 1,
        "sent_at": None,
        "note": "",
        "raw": b"raw",
    }
    return known | changes


def dead_row(dead_id: str, **changes: Any) -> Row:
    known = {
        "id": dead_id,
        "task": "t",
        "kind": "",
        "reason": "it does not decode",
        "queue": "q",
        "received_at": 3,
        "raw": b"\xff",
    }
    return known | changes


def event_row(at: int) -> Row:
    return {"task": "t", "at": at, "name": "PoolMissed", "data": b"{}", "message_id": None}


def lease_row(instance: str) -> Row:
    return {"action_id": "a-1", "attempt": 1, "instance": instance, "task": "t", "since": 1}


def test_a_group_is_written_whole(tmp_path: Path) -> None:
    with journal_at(tmp_path) as journal:
        journal.write(
            Group(
                inbox=[inbox_row("m-1")],
                events=[event_row(1), event_row(2)],
                outbox=[outbox_row("o-1")],
                leases={("a-1", 1, "w"): lease_row("w")},
                dead=[dead_row("d-1")],
            )
        )

    counts = {table: len(rows(tmp_path, table)) for table in FINE_TABLES}
    assert counts == {
        "inbox": 1, "events": 2, "outbox": 1, "tasks": 0, "steps": 0, "leases": 1, "workers": 0, "dead": 1,
    }  # fmt: skip


def test_a_group_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with journal_at(tmp_path) as journal:
        journal.write(Group(outbox=[outbox_row("o-1")]))

        with pytest.raises(IntegrityError):
            journal.write(Group(inbox=[inbox_row("m-1")], events=[event_row(1)], outbox=[outbox_row("o-1")]))

    assert {table: len(rows(tmp_path, table)) for table in ("inbox", "events", "outbox")} == {
        "inbox": 0,
        "events": 0,
        "outbox": 1,
    }


def test_a_message_that_comes_again_is_known_and_kept_once(tmp_path: Path) -> None:
    with journal_at(tmp_path) as journal:
        journal.write(Group(inbox=[inbox_row("m-1")]))
        journal.write(Group(inbox=[inbox_row("m-1", note="again"), inbox_row("m-2")]))
        known = journal.known([f"m-{number}" for number in range(2_000)])

    assert known == {"m-1", "m-2"}
    assert [(row["message_id"], row["note"]) for row in rows(tmp_path, "inbox")] == [("m-1", ""), ("m-2", "")]


def test_what_was_confirmed_is_not_sent_again(tmp_path: Path) -> None:
    with journal_at(tmp_path) as journal:
        journal.write(Group(outbox=[outbox_row(f"o-{number}") for number in range(3)]))
        journal.write(Group(sent=[{"message_id": "o-1", "at": 9, "note": "unroutable"}]))
        unsent = [row["message_id"] for row in journal.unsent()]

    assert unsent == ["o-0", "o-2"]
    assert [(row["sent_at"], row["note"]) for row in rows(tmp_path, "outbox")][1] == (9, "unroutable")


def test_a_lease_that_ended_is_gone_and_may_be_taken_again(tmp_path: Path) -> None:
    key = ("a-1", 1, "w")
    with journal_at(tmp_path) as journal:
        journal.write(Group(leases={key: lease_row("w")}))
        journal.write(Group(leases={key: None, ("a-1", 1, "v"): lease_row("v")}))
        between = [row["instance"] for row in rows(tmp_path, "leases")]
        journal.write(Group(leases={key: lease_row("w")}))

    assert between == ["v"]
    assert sorted(row["instance"] for row in rows(tmp_path, "leases")) == ["v", "w"]


def test_nothing_to_write_opens_no_transaction(tmp_path: Path) -> None:
    with journal_at(tmp_path) as journal, sqlite3.connect(tmp_path / JOURNAL_FILE) as other:
        other.execute("begin immediate")  # nobody else can write now
        journal.write(Group())
        other.rollback()
    other.close()


def test_a_locked_journal_says_so_and_has_nothing_of_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.journal.journal.BUSY_TIMEOUT_MS", 10)
    with journal_at(tmp_path) as journal, sqlite3.connect(tmp_path / JOURNAL_FILE) as other:
        other.execute("begin immediate")
        with pytest.raises(JournalUnavailableError, match="Check the disk and its permissions"):
            journal.write(Group(inbox=[inbox_row("m-1")]))
        other.rollback()
        nothing = rows(tmp_path, "inbox")
        journal.write(Group(inbox=[inbox_row("m-1")]))
    other.close()

    assert (nothing, len(rows(tmp_path, "inbox"))) == ([], 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"created_at": 2**64 - 1},
        {"created_at": -(2**64)},
        {"sender_instance": "caf\udce9"},
        {"note": "\ud800"},
    ],
)
def test_what_a_stranger_sends_never_stops_the_journal(tmp_path: Path, changes: Row) -> None:
    with journal_at(tmp_path) as journal:
        journal.write(Group(inbox=[inbox_row("m-1", **changes)], dead=[dead_row("d-1", reason="caf\udce9")]))

    assert len(rows(tmp_path, "inbox")) == 1
    assert rows(tmp_path, "dead")[0]["reason"] == "caf\\udce9"


def test_each_start_takes_a_higher_epoch(tmp_path: Path) -> None:
    epochs = []
    for _ in range(3):
        with journal_at(tmp_path) as journal:
            epochs.append(journal.next_epoch())

    assert epochs == [1, 2, 3]


def test_a_journal_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    with journal_at(tmp_path):
        pass
    with sqlite3.connect(tmp_path / JOURNAL_FILE) as connection:
        connection.execute("update meta set value = ? where key = 'version'", (str(JOURNAL_VERSION + 1),))
    connection.close()

    with pytest.raises(SettingsError, match=r"newer release \(version 2\)\. Start that release"):
        Journal.open(tmp_path / JOURNAL_FILE)


def test_a_file_that_is_no_journal_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / JOURNAL_FILE).write_bytes(b"not a database" * 100)

    with pytest.raises(SettingsError, match="cannot be opened: file is not a database"):
        Journal.open(tmp_path / JOURNAL_FILE)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be opened: unable to open database file"):
        Journal.open(tmp_path / "nowhere" / JOURNAL_FILE)


def test_the_journal_is_its_owners_alone(tmp_path: Path) -> None:
    with journal_at(tmp_path):
        assert (tmp_path / JOURNAL_FILE).stat().st_mode & 0o777 == 0o600


def under_way(tmp_path: Path, kind: type[Any]) -> World:
    """A task that is in the journal up to the first command of this kind, which was not carried out."""
    world = Recorded((rule("one"), rule("two")), shard_count=2)
    with recording(tmp_path, world):
        world.submit()
        while not (world.outbox and isinstance(world.outbox[0], kind)):
            if not world.outbox:
                world.fill()
            else:
                world.obey(world.outbox.popleft())
        # What is still in the outbox was not sent.
        unsent = {str(row["message_id"]) for row in world.group.outbox[-len(world.outbox) :]}
        world.group.sent = [one for one in world.group.sent if one["message_id"] not in unsent]
    return world


@pytest.mark.parametrize("kind", [Dispatch, Compose, MoveHead])
def test_a_start_makes_the_same_state_again_and_knows_what_was_not_sent(
    tmp_path: Path, kind: type[Any]
) -> None:
    world = under_way(tmp_path, kind)

    with journal_at(tmp_path) as journal:
        states, unsent = journal.unfinished(), journal.unsent()

    assert states == Replayed({"task-1": world.state})
    minted = [reread(row) for row in unsent]
    effects = [one.command for one in minted if isinstance(one, Effect)]
    bodies = [one.outgoing.envelope.body for one in minted if isinstance(one, Posting)]
    assert effects == [one for one in world.outbox if isinstance(one, Compose | MoveHead)]
    assert [(body["action_id"], body["step"]) for body in bodies] == [
        (one.spec.action_id, one.spec.step) for one in world.outbox if isinstance(one, Dispatch)
    ]


def test_a_task_that_ended_is_not_taken_up_but_can_be_asked_for(tmp_path: Path) -> None:
    world = Recorded((rule("one"),))
    with recording(tmp_path, world):
        world.submit()
        world.tell(Cancel(world.at, "enough"))

    with journal_at(tmp_path) as journal:
        assert journal.unfinished() == Replayed()
        assert journal.load(["task-1", "task-2"]) == Replayed({"task-1": world.state})


@pytest.mark.parametrize(
    ("name", "data", "fault"),
    [
        (
            "RuleLanded",
            b'{"at":1,"rule":0,"commit":"c"}',
            "IllegalMoveError: RuleStatus: waiting may not become landed.",
        ),
        ("TaskPondered", b"{}", "KeyError: 'TaskPondered'"),
        ("PoolMissed", b"not JSON", "ValidationError: "),
        ("RuleLanded", b'{"at":1,"rule":7,"commit":"c"}', "IndexError: "),
    ],
)
def test_a_record_that_makes_no_state_stops_no_other_task(
    tmp_path: Path, name: str, data: bytes, fault: str
) -> None:
    sound, broken = Recorded((rule("one"),)), Recorded((rule("one"),), state=TaskState("task-2"))
    for world in (sound, broken):
        with recording(tmp_path, world):
            world.submit()
    with journal_at(tmp_path) as journal:
        row = {"task": "task-2", "at": 1, "name": name, "data": data, "message_id": None}
        journal.write(Group(events=[row]))

        replayed = journal.unfinished()

    assert replayed.states == {"task-1": sound.state}
    assert list(replayed.faults) == ["task-2"]
    assert replayed.faults["task-2"].startswith(fault)

"""Reading the journal while somebody writes it, or while nobody does."""

import json
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import ContractError, SettingsError
from schemas.report import DeadLine, WorkerLine
from schemas.words import TaskStatus
from supervisor.journal.journal import Group, Row
from supervisor.journal.reader import JournalReader
from supervisor.saga.messages import Cancel
from supervisor.saga.state import TaskState
from tests.role_builders import contract
from tests.unit.recorded import Recorded, journal_at, reading, recording
from tests.unit.saga_world import request, rule
from tests.unit.test_journal import dead_row, inbox_row, outbox_row


def submitted(folder: Path, *names: str) -> None:
    """Tasks of these ids; the last one was canceled."""
    for number, name in enumerate(names):
        asked = request(recipe_name=f"recipe-{number}", submitted_by="ada", repository="caf\udce9")
        world = Recorded((rule("one"),), state=TaskState(name), request=asked, at=1_000_000 * (number + 1))
        with recording(folder, world):
            world.submit()
            if number == len(names) - 1:
                world.tell(Cancel(world.at, "not needed"))


def worker_row(instance: str, **changes: Any) -> Row:
    line = WorkerLine(
        instance=instance,
        role="counter",
        pool="counter",
        host="host",
        pid=7,
        version="1",
        slots=2,
        state="ready",
        heartbeat_at=5,
    ).model_copy(update=changes)
    data = {"line": line.model_dump(mode="json"), "contracts": [contract().model_dump(mode="json")]}
    fields = ("instance", "role", "pool", "host", "pid", "version", "slots", "state", "heartbeat_at")
    return {name: getattr(line, name) for name in fields} | {"data": json.dumps(data).encode()}


def test_without_a_journal_it_says_that_nothing_was_ever_submitted(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="nothing was ever submitted in this environment"):
        JournalReader.open(tmp_path)


@pytest.mark.parametrize("name", ["plain", "a b", "50% off?", "c#d&mode=rw"])
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    submitted(folder, "task-a")

    with reading(folder) as reader:
        assert [line.task for line in reader.tasks()] == ["task-a"]


def test_tasks_are_listed_newest_first_and_found_by_state_time_and_words(tmp_path: Path) -> None:
    submitted(tmp_path, "task-a", "task-b", "task-c")

    with reading(tmp_path) as reader:
        everything = [line.task for line in reader.tasks()]
        working = [line.task for line in reader.tasks(state=TaskStatus.WORKING)]
        recent = [line.task for line in reader.tasks(since_us=2_000_000)]
        found = {
            word: [line.task for line in reader.tasks(grep=word)] for word in ("RECIPE-1", "not needed", "x")
        }
        ended = reader.tasks(state=TaskStatus.CANCELED)[0]

    assert everything == ["task-c", "task-b", "task-a"]
    assert working == ["task-b", "task-a"]
    assert recent == ["task-c", "task-b"]
    assert found == {"RECIPE-1": ["task-b"], "not needed": ["task-c"], "x": []}
    assert (ended.reason, ended.submitted_by, ended.repository) == (
        "canceled: not needed",
        "ada",
        "caf\\udce9",
    )


def test_a_task_is_found_by_the_beginning_or_the_end_of_its_id(tmp_path: Path) -> None:
    submitted(tmp_path, "0198-aaaa", "0198-bbbb")

    with reading(tmp_path) as reader:
        assert [reader.find(part) for part in ("0198-a", "bbbb", "0198-aaaa")] == [
            "0198-aaaa",
            "0198-bbbb",
            "0198-aaaa",
        ]
        with pytest.raises(
            ContractError, match=r"'0198' fits 2 tasks: 0198-bbbb, 0198-aaaa\. Give more of the id\."
        ):
            reader.find("0198")
        with pytest.raises(ContractError, match=r"There is no task '0198-aaab'\. Did you mean 0198-aaaa\?"):
            reader.find("0198-aaab")
        with pytest.raises(ContractError, match="`rolecall list` shows them"):
            reader.find("zzz")


def test_progress_is_the_last_picture(tmp_path: Path) -> None:
    submitted(tmp_path, "task-a", "task-b")

    with reading(tmp_path) as reader:
        assert reader.progress("task-a").sentence == "planning, and testing the unchanged repository"
        assert reader.progress("task-b").sentence == "canceled: not needed"
        with pytest.raises(ContractError, match="There is no task 'task-c'"):
            reader.progress("task-c")


def test_messages_of_one_task_are_listed_in_both_directions(tmp_path: Path) -> None:
    with journal_at(tmp_path) as journal:
        journal.write(
            Group(
                inbox=[inbox_row("m-1", created_at=2), inbox_row("other", task="another")],
                outbox=[outbox_row("o-1", created_at=1), outbox_row("o-2", created_at=3)],
                sent=[{"message_id": "o-1", "at": 4, "note": ""}],
            )
        )

    with reading(tmp_path) as reader:
        letters = reader.letters("t")
        raw = (reader.letter("m-1"), reader.letter("o-1"))

    assert [(one.message_id, one.direction, one.sender, one.sent_at) for one in letters] == [
        ("o-1", "out", "supervisor", 4),
        ("m-1", "in", "executor host-1-1", None),
        ("o-2", "out", "supervisor", None),
    ]
    assert raw == (b"raw", None)


def test_parked_messages_are_listed_newest_first_with_their_bytes(tmp_path: Path) -> None:
    with journal_at(tmp_path) as journal:
        journal.write(Group(dead=[dead_row("d-1"), dead_row("d-2", received_at=9, raw=b"abc")]))

    with reading(tmp_path) as reader:
        listed = reader.dead()
        raw = reader.dead_raw("d-1")
        with pytest.raises(ContractError, match="`rolecall dead list` shows them"):
            reader.dead_raw("d-3")

    assert listed[0] == DeadLine(
        id="d-2", task="t", kind="", reason="it does not decode", queue="q", received_at=9, size_bytes=3
    )
    assert ([one.id for one in listed], raw) == (["d-2", "d-1"], b"\xff")


def test_processes_and_the_contracts_of_those_that_are_there(tmp_path: Path) -> None:
    with journal_at(tmp_path) as journal:
        workers = {name: worker_row(name) for name in ("w-1", "w-2")}
        journal.write(Group(workers={**workers, "w-3": worker_row("w-3")}))
        journal.write(Group(workers={"w-1": worker_row("w-1", state="gone"), "w-3": None}))
        with reading(tmp_path) as reader:
            listed = [(one.instance, one.state) for one in reader.workers()]
            served = [one.ref for one in reader.contracts()]
        journal.write(Group(workers={"w-2": worker_row("w-2", state="lost")}))
        with reading(tmp_path) as reader:
            left = reader.contracts()

    assert listed == [("w-1", "gone"), ("w-2", "ready")]
    assert (served, left) == (["count.words@1"], [])


def test_events_of_a_newer_release_are_passed_over(tmp_path: Path) -> None:
    submitted(tmp_path, "task-a")
    with journal_at(tmp_path) as journal:
        newer = {"task": "task-a", "at": 9, "name": "TaskPondered", "data": b"{}", "message_id": None}
        journal.write(Group(events=[newer]))

    with reading(tmp_path) as reader:
        names = [type(one.event).__name__ for one in reader.events("task-a")]

    assert names[0] == "TaskAccepted"
    assert "TaskPondered" not in names

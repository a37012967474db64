"""The log of a process: structured in its file, readable on the terminal, without secrets in either."""

import io
import json
import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import structlog

from bus import log_sinks
from bus.log_sinks import Alarms, Terminal
from bus.logs import logging_to


def records(path: Path | None) -> list[dict[str, Any]]:
    assert path is not None
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_record_has_a_sentence_a_stable_action_and_its_ids(tmp_path: Path) -> None:
    with logging_to(tmp_path, "executor", terminal=None) as path:
        structlog.get_logger().info(
            "Took %s.", "the work", action="work_accepted", task="t1", attempt=2, lane="standing"
        )

    (record,) = records(path)
    assert list(record)[:5] == ["at", "level", "process", "action", "text"]
    del record["at"]
    assert record == {
        "level": "info",
        "process": "executor",
        "action": "work_accepted",
        "text": "Took the work.",
        "task": "t1",
        "attempt": 2,
        "lane": "standing",
    }


def test_the_terminal_shows_one_line_each_whatever_the_message_holds(tmp_path: Path) -> None:
    terminal = io.StringIO()

    with logging_to(None, "tester", terminal=Terminal(terminal)):
        structlog.get_logger().warning("Two\nlines and \x1b[2J a command", action="x", task="t1", nonce="n")

    (line,) = terminal.getvalue().splitlines()
    assert line[8:] == "  tester            ! Two lines and  [2J a command  task=t1"


def test_secrets_reach_neither_file_nor_terminal(tmp_path: Path) -> None:
    terminal = io.StringIO()

    with logging_to(tmp_path, "executor", terminal=Terminal(terminal)) as path:
        log = structlog.get_logger()
        log.info("At amqp://u:s3cr3t@h/", action="a", nonce="s3cr3t", nested={"password": "s3cr3t"})
        logging.getLogger("some.library").warning("lost %s", "amqp://u:s3cr3t@h/")
        try:
            int("amqp://u:s3cr3t@h/")
        except ValueError:
            log.exception("It failed.", action="b")

    assert path is not None
    written = path.read_text("utf-8") + terminal.getvalue()
    assert "s3cr3t" not in written
    assert written.count("ValueError: invalid literal for int() with base 10: 'amqp://u:[redacted]@h/'") == 2


def test_what_libraries_log_takes_the_same_way(tmp_path: Path) -> None:
    with logging_to(tmp_path, "executor", terminal=None) as path:
        logging.getLogger("some.library").error("It broke: %s", 7)
        logging.getLogger("bus.dispatch").error("Not handled.", extra={"action": "callback_failed"})

    assert [(one["level"], one["action"], one["text"]) for one in records(path)] == [
        ("error", "library", "It broke: 7"),
        ("error", "callback_failed", "Not handled."),
    ]


def test_the_level_is_kept(tmp_path: Path) -> None:
    with logging_to(tmp_path, "executor", level="warning", terminal=None) as path:
        structlog.get_logger().info("no", action="a")
        structlog.get_logger().warning("yes", action="a")

    assert [one["text"] for one in records(path)] == ["yes"]


def test_a_file_is_bounded_and_its_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_sinks, "MAX_FILE_BYTES", 2_000)

    with logging_to(tmp_path, "executor", terminal=None):
        for number in range(200):
            structlog.get_logger().info("Line %d.", number, action="a")

    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["executor.jsonl", "executor.jsonl.1"]
    assert all(file.stat().st_size <= 2_000 for file in files)
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)


def test_logs_of_processes_long_gone_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_sinks, "MAX_FILES", 3)
    for number in range(6):
        (tmp_path / f"old-{number}.jsonl").touch()
        os.utime(tmp_path / f"old-{number}.jsonl", (number, number))

    with logging_to(tmp_path, "new", terminal=None):
        pass

    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "new.jsonl",
        "old-3.jsonl",
        "old-4.jsonl",
        "old-5.jsonl",
    ]


def test_a_log_that_cannot_be_written_fails_nobody(tmp_path: Path) -> None:
    gone = io.StringIO()
    gone.close()

    with logging_to(None, "executor", terminal=Terminal(gone)):
        structlog.get_logger().error("Into the void.", action="a")


def test_a_terminal_that_shows_something_else_hears_of_errors_once() -> None:
    shown = io.StringIO()

    with logging_to(None, "solo", terminal=Alarms(shown)):
        log = structlog.get_logger()
        log.warning("Have a look.", action="a")
        for _ in range(3):
            log.error("The disk is full.", action="b")

    (line,) = shown.getvalue().splitlines()
    assert "The disk is full." in line


def test_values_that_are_not_json_are_written_as_text_and_redacted(tmp_path: Path) -> None:
    with logging_to(tmp_path, "executor", terminal=None) as path:
        error = RuntimeError("amqp://u:s3cr3t@h/")
        structlog.get_logger().info(
            "Odd.", action="a", error=error, path=tmp_path, name="caf\udce9", raw=b"xy"
        )

    (record,) = records(path)
    assert (record["error"], record["path"]) == ("amqp://u:[redacted]@h/", str(tmp_path))
    assert (record["name"], record["raw"]) == ("caf\udce9", "<2 bytes>")


def test_logging_is_as_before_when_it_ends(tmp_path: Path) -> None:
    before = (logging.getLogger().handlers[:], logging.getLogger().level)

    with logging_to(tmp_path, "executor", terminal=Terminal(io.StringIO())):
        pass

    assert (logging.getLogger().handlers[:], logging.getLogger().level) == before

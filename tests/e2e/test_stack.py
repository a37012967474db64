"""A running stack: who is there, who joins, what is told of a task, and what happens when something dies."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from bus.connection_file import live_connection
from bus.instance import is_alive, started_us
from schemas.errors import ExitCode
from tests.e2e.terminals import ROOT, Terminal, branches, pids, shop, stack, wait
from tests.unit.workspace_repos import new_repository, run_git

pytestmark = pytest.mark.timeout(400)
ROLES = ["executor", "executor", "planner", "reviewer", "supervisor", "tester"]


def test_every_role_answers_the_roll_call(running: Terminal) -> None:
    lines = running.data("ps")

    assert sorted(line["role"] for line in lines if line["state"] == "ready") == ROLES
    table = running.run("ps").stdout
    assert all(str(line["pid"]) in table for line in lines)


def test_a_second_stack_of_the_environment_is_refused(running: Terminal) -> None:
    done = running.run("up")

    assert done.returncode == ExitCode.USAGE
    assert re.search(
        rf"A stack of environment '{running.environment}' runs already \(process \d+\)", done.stderr
    )


def test_an_executor_from_a_second_terminal_needs_no_options_and_takes_part(running: Terminal) -> None:
    before = set(pids(running, "executor"))
    other = running.start("executor")
    try:
        wait(lambda: other.pid in pids(running, "executor"))
        assert set(pids(running, "executor")) == before | {other.pid}
    finally:
        other.send_signal(signal.SIGTERM)
        said, _ = other.communicate(timeout=60)

    assert other.returncode == 0, said
    wait(lambda: other.pid not in pids(running, "executor"))


def test_a_role_that_is_killed_is_started_again(running: Terminal) -> None:
    (before,) = pids(running, "reviewer")

    os.kill(before, signal.SIGKILL)

    wait(lambda: [pid for pid in pids(running, "reviewer") if pid != before])


def test_a_task_is_told_by_every_reading_command_under_a_part_of_its_id(
    running: Terminal, tmp_path: Path
) -> None:
    repository, recipe = shop(tmp_path)
    submitted = running.run("submit", *running.order(repository, recipe))
    task = submitted.stdout.strip()
    assert submitted.returncode == 0, submitted.stderr

    watched = running.run("watch", task, "--json")

    assert watched.returncode == ExitCode.OK, watched.stdout + watched.stderr
    assert json.loads(watched.stdout)["status"] == "completed"
    assert "everything landed" in watched.stderr
    short = task[-8:]
    assert branches(repository) == []
    assert running.data("status", short)["status"] == "completed"
    assert [line["task"] for line in running.data("list", "--grep", str(repository), "--since", "1h")] == [
        task
    ]
    report = running.data("report", task[:30])
    assert [rule["status"] for rule in report["rules"]] == ["landed"] * 3
    assert [rule["proof"] for rule in report["rules"]] == ["rerun"] * 3
    assert running.run("report", short, "--md").stdout.startswith("# All 3 rules landed\n")
    trace = running.data("trace", short)
    assert {action["kind"] for action in trace["actions"]} >= {"plan", "baseline", "change", "review", "test"}
    messages = {message["message_id"] for message in trace["messages"]}
    causes = {message["causation_id"] for message in trace["messages"]} - {None}
    assert causes <= messages
    assert "action.handoff" in running.run("trace", short, "--messages").stdout
    diff = running.run("diff", short)
    assert "-    return add_all(items)\n+    return sum(items)\n" in diff.stdout
    assert running.data("diff", short, "--rule", "words")["files"][0]["path"] == "README.md"
    delivered = running.data("deliver", short)
    assert (delivered["branch"], delivered["is_new"]) == (report["branch"], True)
    assert branches(repository) == [report["branch"]]
    assert "already" in running.run("deliver", short).stdout
    wait(lambda: running.data("report", short)["delivered"] == report["branch"])


def test_a_wrong_password_and_another_broker_are_told_apart(running: Terminal, tmp_path: Path) -> None:
    repository, recipe = shop(tmp_path)
    connection = live_connection(running.state_dir)
    assert connection is not None
    wrong = re.sub(r":[^:@/]+@", ":wrong@", connection.broker_url)
    same = connection.broker_url.rstrip("/") + "/%2F"

    refused = running.run("run", *running.order(repository, recipe), "--yes", "--broker", wrong)
    other = running.run("run", *running.order(repository, recipe), "--yes", "--broker", same)

    assert refused.returncode == ExitCode.BROKER_UNREACHABLE, refused.stderr
    assert other.returncode == ExitCode.USAGE
    assert "runs on another broker" in other.stderr
    assert len((refused.stderr + other.stderr).strip().splitlines()) == 2


def test_what_is_not_there_gets_one_line_that_helps(running: Terminal, tmp_path: Path) -> None:
    repository, recipe = shop(tmp_path)
    cases = {
        ("status", "ffffffff-nope"): "There is no task",
        ("dead", "show", "nope"): "There is no parked message",
        ("cancel", "ffffffff-nope"): "There is no task",
        ("run", *running.order(repository, recipe), "--base", "nope"): "has no commit 'nope'",
        ("run", *running.order(repository, Path("modernise.yaml"))): "There is no recipe 'modernise.yaml'",
        ("run", *running.order(tmp_path, recipe)): "is not in a git repository",
    }

    told = {words: running.run(*words) for words in cases}

    for words, said in cases.items():
        assert told[words].returncode == ExitCode.USAGE, words
        assert said in told[words].stderr
        assert "Traceback" not in told[words].stderr
        assert len(told[words].stderr.strip().splitlines()) == 1


def test_a_task_can_be_canceled_from_another_terminal(running: Terminal, tmp_path: Path) -> None:
    repository, recipe = shop(tmp_path)
    slow = ("--test", 'python -c "import time; time.sleep(600)"')
    task = running.run("submit", *running.order(repository, recipe, *slow)).stdout.strip()
    wait(lambda: "testing the unchanged" in running.run("status", task).stdout)
    watcher = running.start("watch", task)
    assert watcher.stdout is not None
    assert "testing the unchanged" in watcher.stdout.readline()
    watcher.send_signal(signal.SIGINT)
    left, _ = watcher.communicate(timeout=60)

    asked = running.data("cancel", task, "--reason", "a better idea")

    assert (watcher.returncode, "Left task" in left) == (130, True)
    assert asked["asked"]
    assert running.run("watch", task).returncode == ExitCode.CANCELED
    assert "a better idea" in running.data("report", task)["reason"]
    assert running.run("cancel", task).returncode == ExitCode.USAGE


def test_a_role_of_ones_own_serves_a_rule_and_is_proved_by_running_twice(
    running: Terminal, tmp_path: Path
) -> None:
    example = ROOT / "examples" / "licence_headers"
    files = {
        "src/a.py": "a = 1\n",
        "src/b.py": "# Copyright Ada\n",
        "tests/test_a.py": "def test_a(): pass\n",
    }
    repository = new_repository(tmp_path / "project", files)
    author = Terminal(running.state_home, running.environment, folder=example)
    unknown = author.run("run", *author.order(repository, example / "recipe.yaml"), "--yes")
    role = author.start("role", "licence_headers:LicenceHeaders", "--slots", "2")
    try:
        wait(lambda: pids(running, "licence-header"))
        assert "licence.header@1" in running.run("contracts").stdout

        done = author.run("run", *author.order(repository, example / "recipe.yaml"), "--yes")
    finally:
        role.send_signal(signal.SIGTERM)
        said, _ = role.communicate(timeout=60)

    assert unknown.returncode == ExitCode.USAGE
    assert "no live role announced it" in unknown.stderr
    assert done.returncode == ExitCode.OK, done.stdout + done.stderr + said
    (branch,) = branches(repository)
    assert run_git(repository, "show", f"{branch}:src/a.py").startswith("# SPDX-FileCopyrightText")
    (rule,) = running.data("report")["rules"]
    assert (rule["proof"], rule["residue_count"]) == ("twice", 1)
    assert "gave the same commits" in rule["proof_by"]


def test_a_stack_stops_in_order_and_leaves_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    terminal = Terminal(tmp_path, environment="alone")
    with stack(terminal, "--executors", "1"):
        children = [line["pid"] for line in terminal.data("ps")]
        born = {pid: started_us(pid) or 0 for pid in children}
        node = json.loads((terminal.state_dir / "rabbitmq" / "node.json").read_text())

    told = (tmp_path / "up.log").read_text()
    assert told.index("Stopping: roles first") < told.index("Stopping the private RabbitMQ node")
    assert told.count("Said goodbye.") == len(children) - 1 == 4
    assert not any(is_alive(pid, start) for pid, start in born.items())
    assert not is_alive(node["pid"], node["started_at"])
    assert live_connection(terminal.state_dir) is None
    assert "Killing" not in told

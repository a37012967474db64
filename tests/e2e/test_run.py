"""`rolecall run` from a terminal: it starts what it needs, delivers, and leaves nothing running."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from bus.connection_file import live_connection
from schemas.errors import ExitCode
from tests.e2e.terminals import (
    FILES,
    RECIPE,
    Terminal,
    branches,
    commits,
    need_services,
    processes_of,
    shop,
    wait,
)
from tests.unit.workspace_repos import new_repository, run_git, save

pytestmark = pytest.mark.timeout(400)
SLOW_TEST = 'python -c "import time; time.sleep(600)"'


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    need_services()
    tmp_path.chmod(0o700)
    return Terminal(tmp_path)


def test_a_run_starts_a_stack_delivers_and_stops_what_it_started(terminal: Terminal, tmp_path: Path) -> None:
    repository, recipe = shop(tmp_path)
    (repository / "notes.txt").write_text("mine\n")
    before = _picture(repository)

    done = terminal.run("run", *terminal.order(repository, recipe), "--yes")

    assert done.returncode == ExitCode.OK, done.stdout + done.stderr
    assert "All 3 rules landed" in done.stdout
    assert "notes.txt" in done.stdout
    (branch,) = branches(repository)
    assert len(commits(repository, branch)) == 1 + 3
    assert run_git(repository, "show", f"{branch}:shop/stock.py") == (
        "def count(shelves):\n    return sum([len(one) for one in shelves])"
    )
    assert _picture(repository) == before
    # The stack of the first run is just ending; the same refactor gives the same commits again.
    again = terminal.run("run", *terminal.order(repository, recipe), "--yes", "--branch", "again")
    assert again.returncode == ExitCode.OK, again.stdout + again.stderr
    assert commits(repository, "again") == commits(repository, branch)
    wait(lambda: processes_of(terminal) == [])
    assert live_connection(terminal.state_dir) is None
    # The story can be told when nothing runs.
    assert terminal.data("status")["status"] == "completed"
    assert len(terminal.data("list")) == 2


def test_two_runs_at_once_share_one_stack(terminal: Terminal, tmp_path: Path) -> None:
    repository, recipe = shop(tmp_path)
    words = ("run", *terminal.order(repository, recipe), "--yes", "--branch")

    clients = {name: terminal.start(*words, name) for name in ("one", "two")}
    said = {name: client.communicate(timeout=300)[0] for name, client in clients.items()}

    assert [client.returncode for client in clients.values()] == [ExitCode.OK] * 2, said
    assert commits(repository, "one") == commits(repository, "two")
    assert len({line["instance"] for line in terminal.data("ps", "--all") if line["role"] == "planner"}) == 1
    wait(lambda: processes_of(terminal) == [])


def test_solo_delivers_the_same_commits_and_says_what_it_is(terminal: Terminal, tmp_path: Path) -> None:
    repository, recipe = shop(tmp_path)
    solo = Terminal(tmp_path, environment="solo")

    alone = solo.run("run", *solo.order(repository, recipe), "--yes", "--solo", "--branch", "alone")
    together = terminal.run("run", *terminal.order(repository, recipe), "--yes", "--branch", "together")

    assert (alone.returncode, together.returncode) == (ExitCode.OK, ExitCode.OK), alone.stdout + alone.stderr
    assert "Solo: without RabbitMQ, every role runs in this one process." in alone.stdout
    assert commits(repository, "alone") == commits(repository, "together")
    assert solo.data("report")["status"] == "completed"


def test_a_branch_that_moves_meanwhile_gets_the_refactor_where_it_stands_at_the_end(
    terminal: Terminal, tmp_path: Path
) -> None:
    repository, recipe = shop(tmp_path)
    slow = 'python -c "import time; time.sleep(5)"'
    client = terminal.start("run", *terminal.order(repository, recipe), "--yes", "--solo", "--test", slow)
    wait(lambda: _is_testing(terminal))
    moved = save(repository, {"shop/more.py": "def more(shelves):\n    return len(shelves)\n"})

    said, _ = client.communicate(timeout=300)

    assert client.returncode == ExitCode.OK, said
    assert "main is 1 commit further now" in said
    (branch,) = branches(repository)
    assert moved in run_git(repository, "rev-list", branch).split()
    second, first = terminal.data("list")
    report = terminal.data("report", second["task"])
    assert (report["follows"], report["base"]) == (first["task"], moved)


def test_a_client_that_is_killed_takes_its_stack_with_it(terminal: Terminal, tmp_path: Path) -> None:
    repository, recipe = shop(tmp_path)
    client = terminal.start("run", *terminal.order(repository, recipe), "--yes", "--test", SLOW_TEST)
    wait(lambda: live_connection(terminal.state_dir) is not None)

    client.kill()
    client.communicate()

    wait(lambda: processes_of(terminal) == [])
    assert branches(repository) == []


def test_ctrl_c_once_cancels_and_reports_and_the_repository_is_clean(
    terminal: Terminal, tmp_path: Path
) -> None:
    repository, recipe = shop(tmp_path)
    client = terminal.start("run", *terminal.order(repository, recipe), "--yes", "--test", SLOW_TEST)
    wait(lambda: _is_testing(terminal))

    client.send_signal(signal.SIGINT)
    said, _ = client.communicate(timeout=120)

    assert client.returncode == ExitCode.CANCELED, said
    assert "Canceled: 0 of 3 rules had landed" in said
    assert (branches(repository), run_git(repository, "status", "--porcelain")) == ([], "")
    wait(lambda: processes_of(terminal) == [])
    assert terminal.data("status")["status"] == "canceled"


def test_ctrl_c_twice_stops_now(terminal: Terminal, tmp_path: Path) -> None:
    repository, recipe = shop(tmp_path)
    client = terminal.start("run", *terminal.order(repository, recipe), "--yes", "--test", SLOW_TEST)
    wait(lambda: _is_testing(terminal))

    # The supervisor does not answer, so the first Ctrl-C alone would wait.
    supervisor = _supervisor(terminal)
    os.kill(supervisor, signal.SIGSTOP)
    client.send_signal(signal.SIGINT)
    _wait_for_line(client, "Canceling")
    client.send_signal(signal.SIGINT)
    said, _ = client.communicate(timeout=30)
    os.kill(supervisor, signal.SIGCONT)

    assert client.returncode == ExitCode.CANCELED, said
    assert (branches(repository), run_git(repository, "status", "--porcelain")) == ([], "")
    wait(lambda: processes_of(terminal) == [])
    assert terminal.run("status").returncode == 0


@pytest.mark.parametrize(
    ("url", "said"),
    [("amqp://guest:guest@127.0.0.1:1/", "127.0.0.1:1"), ("amqp://nobody", "nobody")],
)
def test_a_broker_that_does_not_answer_is_one_line_and_its_own_code(
    url: str, said: str, terminal: Terminal, tmp_path: Path
) -> None:
    repository, recipe = shop(tmp_path)

    done = terminal.run("run", *terminal.order(repository, recipe), "--yes", "--broker", url)

    assert done.returncode == ExitCode.BROKER_UNREACHABLE, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert branches(repository) == []
    assert terminal.run("up", "--broker", url).returncode == ExitCode.BROKER_UNREACHABLE


def test_a_rule_that_breaks_the_tests_does_not_land_and_the_others_do(
    terminal: Terminal, tmp_path: Path
) -> None:
    bad = RECIPE + "  - {id: break, rewrite.pattern: {language: python, match: len($X), replace: 7}}\n"
    repository, recipe = shop(tmp_path, bad)

    done = terminal.run("run", *terminal.order(repository, recipe), "--yes", "--solo")

    assert done.returncode == ExitCode.PARTLY_LANDED, done.stdout + done.stderr
    report = terminal.data("report")
    assert [rule["status"] for rule in report["rules"]] == ["landed", "landed", "landed", "unlanded"]
    assert [one["rule"] for one in report["unlanded"]] == ["break"]
    assert report["delivered"] == branches(repository)[0]


def test_a_repository_without_tests_lands_only_when_that_was_allowed(
    terminal: Terminal, tmp_path: Path
) -> None:
    files = {path: text for path, text in FILES.items() if not path.startswith("tests/")}
    repository, recipe = shop(tmp_path, files=files)

    refused = terminal.run("run", *terminal.order(repository, recipe), "--yes", "--solo")
    allowed = terminal.run("run", *terminal.order(repository, recipe), "--yes", "--solo", "--allow-untested")

    assert (refused.returncode, allowed.returncode) == (ExitCode.USAGE, ExitCode.OK), allowed.stdout
    assert "--allow-untested" in refused.stderr
    assert "What landed was not tested" in allowed.stdout


def _picture(repository: Path) -> dict[str, bytes]:
    """Everything that must stay as it is: files, index, configuration, current branch."""
    kept = [path for path in repository.rglob("*") if path.is_file() and ".git" not in path.parts]
    kept += [repository / ".git" / name for name in ("index", "config", "HEAD")]
    return {str(path): path.read_bytes() for path in kept}


def _is_testing(terminal: Terminal) -> bool:
    done = terminal.run("status")
    return done.returncode == 0 and "testing the unchanged repository" in done.stdout


def _supervisor(terminal: Terminal) -> int:
    done = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    mine = set(processes_of(terminal))
    found = [int(line.split()[0]) for line in done.stdout.splitlines() if "-m supervisor" in line]
    return next(pid for pid in found if pid in mine)


def _wait_for_line(client: "subprocess.Popen[str]", text: str) -> None:
    assert client.stdout is not None
    for line in client.stdout:
        if text in line:
            return
    pytest.fail(f"It ended without saying {text!r}.")


def test_a_repository_of_another_object_format_gets_an_environment_of_its_own(
    terminal: Terminal, tmp_path: Path
) -> None:
    ordinary, recipe = shop(tmp_path)
    other = new_repository(tmp_path / "sha256", {"a.md": "everything\n"}, object_format="sha256")
    words = ("--yes", "--solo", "--allow-untested")
    terminal.run("run", *terminal.order(ordinary, recipe), *words)

    refused = terminal.run("run", *terminal.order(other, recipe), *words)
    landed = Terminal(tmp_path, environment="sha256").run("run", *terminal.order(other, recipe), *words)

    assert refused.returncode == ExitCode.USAGE
    assert "uses sha256 and the hub sha1. `rolecall run --environment NAME`" in refused.stderr
    assert landed.returncode == ExitCode.OK, landed.stdout + landed.stderr
    assert len(branches(other)) == 1

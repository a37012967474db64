"""Kill any one process with -9 in the middle of a task: the same branch with the same commit ids as undisturbed.

One stack of real processes on a real RabbitMQ serves all of these; whoever is killed is started again by it.
"""

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from rolecall.processes.node_folder import NodeFolder
from schemas.errors import ExitCode
from tests.e2e.terminals import Terminal, commits, need_services, pids, shop, stack, wait

# A lost worker is noticed after three missed heartbeats.
pytestmark = pytest.mark.timeout(300)

BODY = "".join(f"def f{n}(items):\n    return add_all([one + {n} for one in items])\n\n\n" for n in range(60))
FILES = {
    **{f"shop/m{n:02d}.py": f"from shop.price import add_all\n\n\n{BODY}" for n in range(24)},
    "shop/__init__.py": "",
    "shop/price.py": "def add_all(items):\n    return sum(items)\n",
    "tests/__init__.py": "",
    "tests/test_shop.py": (
        "import time\nimport unittest\n\nfrom shop.m00 import f1\n\n\nclass ShopTest(unittest.TestCase):\n"
        "    def test_f(self):\n        time.sleep(1)\n        self.assertEqual(f1([1, 2]), 5)\n"
    ),
    "README.md": "Use add_all for everything.\n",
}
RECIPE = """\
recipe: survive
rules:
  - id: sum
    rewrite.pattern: {language: python, match: add_all($X), replace: sum($X)}
    scope: {include: ["shop/m*"]}
  - id: comprehension
    rewrite.pattern: {language: python, match: "sum([$A for $B in $C])", replace: sum($A for $B in $C)}
  - id: words
    text.replace: {find: everything, replace: anything}
  - id: tidy
    lint.fix: {rules: [F401]}
"""


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A terminal beside a running stack."""
    need_services()
    folder = tmp_path_factory.mktemp("kills")
    folder.chmod(0o700)
    made = Terminal(folder)
    with stack(made, "--executors", "2"):
        yield made


@pytest.fixture(scope="module")
def order(terminal: Terminal) -> tuple[Path, tuple[str, ...]]:
    """A repository that keeps the fleet busy for a while, and how to ask for its refactor."""
    repository, recipe = shop(terminal.state_home, RECIPE, FILES)
    return repository, terminal.order(repository, recipe, "--yes")


@pytest.fixture(scope="module")
def undisturbed(terminal: Terminal, order: tuple[Path, tuple[str, ...]]) -> list[str]:
    """The commits of a run that nothing happened to."""
    repository, words = order
    done = terminal.run("run", *words, "--branch", "undisturbed")
    assert done.returncode == ExitCode.OK, done.stdout + done.stderr
    return commits(repository, "undisturbed")


@pytest.mark.parametrize("role", ["executor", "reviewer", "tester", "planner"])
def test_a_worker_killed_at_work_changes_nothing(
    role: str, terminal: Terminal, order: tuple[Path, tuple[str, ...]], undisturbed: list[str]
) -> None:
    repository, words = order
    wait(lambda: pids(terminal, role))
    if (
        role == "planner"
    ):  # whose work would be over before the signal arrives: its child stands still, and keeps it
        [planner] = pids(terminal, role)
        for child in psutil.Process(planner).children(recursive=True):
            child.suspend()
    client = terminal.start("run", *words, "--branch", f"without-{role}")
    holder = _holder(terminal, role)

    os.kill(int(holder.split("-")[-2]), signal.SIGKILL)
    said, _ = client.communicate(timeout=200)

    assert client.returncode == ExitCode.OK, said
    assert commits(repository, f"without-{role}") == undisturbed
    assert "lost" in {one["outcome"] for one in _attempts(terminal)}


def test_a_killed_supervisor_goes_on_where_it_was(
    terminal: Terminal, order: tuple[Path, tuple[str, ...]], undisturbed: list[str]
) -> None:
    repository, words = order
    client = terminal.start("run", *words, "--branch", "without-supervisor")
    _holder(terminal, "executor")

    os.kill(_supervisor_pid(terminal), signal.SIGKILL)
    said, _ = client.communicate(timeout=200)

    assert client.returncode == ExitCode.OK, said
    assert commits(repository, "without-supervisor") == undisturbed


def test_a_killed_broker_comes_back_and_the_work_resumes(
    terminal: Terminal, order: tuple[Path, tuple[str, ...]], undisturbed: list[str]
) -> None:
    repository, words = order
    client = terminal.start("run", *words, "--branch", "without-broker")
    _holder(terminal, "executor")

    record = NodeFolder(terminal.state_dir / "rabbitmq").record()
    assert record is not None and record.pid is not None  # noqa: PT018 - for the type checker
    os.kill(record.pid, signal.SIGKILL)
    said, _ = client.communicate(timeout=200)

    assert client.returncode == ExitCode.OK, said
    assert commits(repository, "without-broker") == undisturbed


def _holder(terminal: Terminal, role: str) -> str:
    """An instance of the role that holds a lease at this moment."""
    found: list[str] = []

    def look() -> bool:
        query = "select l.instance from leases l join workers w on w.instance = l.instance where w.role = ?"
        with closing(sqlite3.connect(terminal.state_dir / "journal.sqlite")) as journal:
            found[:] = [row[0] for row in journal.execute(query, (role,))]
        return bool(found)

    wait(look)
    return found[0]


def _attempts(terminal: Terminal) -> list[dict[str, str]]:
    newest = terminal.data("list")[0]["task"]
    return [attempt for action in terminal.data("trace", newest)["actions"] for attempt in action["attempts"]]


def _supervisor_pid(terminal: Terminal) -> int:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                environ = (folder / "environ").read_bytes()
            except OSError:
                continue
            if b"supervisor" in words and str(terminal.state_home).encode() in environ:
                return int(folder.name)
    raise AssertionError("no supervisor runs")

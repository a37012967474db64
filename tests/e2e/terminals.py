"""A user's terminal for tests of the whole: runs `rolecall` as its own process, with a state folder of the test's own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bus.connection_file import live_connection
from bus.instance import started_us
from rolecall.processes.rabbitmq_install import find_rabbitmq
from tests.unit.workspace_repos import new_repository

ROOT = Path(__file__).parents[2]
# Everything of a run on a machine that does a lot besides.
LIMIT_S = 150.0

FILES = {
    "shop/__init__.py": "",
    "shop/price.py": "def total(items):\n    return add_all(items)\n\n\ndef add_all(items):\n    return sum(items)\n",
    "shop/stock.py": "from shop.price import add_all\n\n\ndef count(shelves):\n    return add_all([len(one) for one in shelves])\n",
    "tests/__init__.py": "",
    "tests/test_shop.py": (
        "import unittest\n\nfrom shop.price import add_all, total\nfrom shop.stock import count\n\n\n"
        "class ShopTest(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEquals(total([1, 2]), 3)\n\n"
        "    def test_count(self):\n        self.assertEquals(count([[1], [2, 3]]), 3)\n"
    ).replace("assertEquals", "assertEqual"),
    "README.md": "Use add_all for everything.\n",
}
RECIPE = """\
recipe: rename-and-tidy
rules:
  - id: sum
    rewrite.pattern: {language: python, match: add_all($X), replace: sum($X)}
    scope: {include: ["shop/**"]}
  - id: words
    text.replace: {find: everything, replace: anything}
  - id: tidy
    lint.fix: {rules: [F401]}
"""


def need_services() -> None:
    """Skip on a laptop that lacks RabbitMQ or bubblewrap; in CI that is a failure."""
    missing = [
        name
        for name, found in (("rabbitmq-server", find_rabbitmq()), ("bubblewrap", shutil.which("bwrap")))
        if not found
    ]
    if missing and os.environ.get("CI"):
        pytest.fail(f"{' and '.join(missing)} not installed, and CI tests the whole.")
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed.")


@dataclass(frozen=True)
class Terminal:
    """Where the test types. All terminals of one state folder and environment see one stack."""

    state_home: Path
    environment: str = "e2e"
    folder: Path = ROOT
    more: dict[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        """Our surroundings, with nothing of the developer's own Rolecall in it."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith("ROLECALL_")}
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        own = {
            "XDG_STATE_HOME": str(self.state_home),
            "ROLECALL_ENVIRONMENT": self.environment,
            "PYTHONPATH": path,
        }
        return {**plain, **own, **self.more}

    @property
    def state_dir(self) -> Path:
        """The environment's state folder."""
        return self.state_home / "rolecall" / self.environment

    def start(self, *words: str, **how: Any) -> "subprocess.Popen[str]":
        """Start a command and let it run; its output comes as one stream."""
        return subprocess.Popen(
            [sys.executable, "-m", "rolecall", *words],
            env=self.env, cwd=self.folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, **how,
        )  # fmt: skip

    def run(self, *words: str, limit_s: float = LIMIT_S) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "rolecall", *words],
            env=self.env, cwd=self.folder, text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_s,
            check=False,
        )  # fmt: skip

    def data(self, *words: str) -> Any:
        """What a reading command says as JSON."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def order(self, repository: Path, recipe: Path, *more: str) -> tuple[str, ...]:
        """The words of a run on a repository whose tests need nothing but this Python."""
        return ("--recipe", str(recipe), "--repo", str(repository), "--env", sys.prefix, *more)


def shop(folder: Path, recipe: str = RECIPE, files: dict[str, str] | None = None) -> tuple[Path, Path]:
    """A small repository with tests, and a recipe for it."""
    repository = new_repository(folder / "shop", files or FILES)
    path = folder / "recipe.yaml"
    path.write_text(recipe)
    return repository, path


@contextmanager
def stack(terminal: Terminal, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """`rolecall up`, ready; stopped with SIGTERM at the end."""
    with open(terminal.state_home / "up.log", "w+", encoding="utf-8") as log:  # noqa: PTH123
        process = subprocess.Popen(
            [sys.executable, "-m", "rolecall", "up", *options],
            env=terminal.env, cwd=terminal.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        try:
            wait(
                lambda: live_connection(terminal.state_dir) is not None or process.poll() is not None,
                lambda: (terminal.state_home / "up.log").read_text(),
            )
            assert process.poll() is None, (terminal.state_home / "up.log").read_text()
            yield process  # type: ignore[misc]
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(LIMIT_S)
            finally:
                process.kill()


def wait(true: Callable[[], object], told: Callable[[], str] = lambda: "", limit_s: float = LIMIT_S) -> None:
    """Wait for a fact; fails with what `told` says after the limit."""
    limit = time.monotonic() + limit_s
    while not true():
        if time.monotonic() > limit:
            pytest.fail(f"It did not become true within {limit_s:g} s. {told()}")
        time.sleep(0.05)


def commits(repository: Path, branch: str) -> list[str]:
    """The commit ids of a branch, newest first."""
    done = subprocess.run(
        ["git", "-C", str(repository), "log", "--format=%H", branch],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def branches(repository: Path) -> list[str]:
    """The branches that Rolecall delivered."""
    done = subprocess.run(
        ["git", "-C", str(repository), "branch", "--list", "rolecall/*", "--format=%(refname:short)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.split()


def processes_of(terminal: Terminal) -> list[int]:
    """The live processes that belong to this state folder, by their environment."""
    marks = (f"XDG_STATE_HOME={terminal.state_home}".encode(), str(terminal.state_dir).encode())
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            try:
                told = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if any(mark in told for mark in marks) and started_us(int(folder.name)) is not None:
                found.append(int(folder.name))
    return found


def pids(terminal: Terminal, role: str) -> Sequence[int]:
    """The processes of a role that answer the roll call."""
    return [line["pid"] for line in terminal.data("ps") if line["role"] == role and line["state"] == "ready"]

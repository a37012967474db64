"""One stack that the tests of a module share, with a terminal that stands beside it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.terminals import Terminal, need_services, stack


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A terminal in an environment whose stack is up, with two executors."""
    need_services()
    home: Path = tmp_path_factory.mktemp("stack")
    home.chmod(0o700)
    terminal = Terminal(home, environment=f"shared-{os.getpid()}")
    with stack(terminal, "--executors", "2"):
        yield terminal

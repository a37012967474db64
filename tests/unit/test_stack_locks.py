"""Who may start a stack, and who still needs it: the two locks, also after kill -9 of their holders."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rolecall.processes.locks import STACK_LOCK, USERS_LOCK, FileLock, is_stack_running, only_stack
from schemas.errors import SettingsError

HOLD = (
    "import sys, pathlib\n"
    "from rolecall.processes.locks import FileLock\n"
    "lock = FileLock(pathlib.Path(sys.argv[1]))\n"
    "print(lock.take(shared=sys.argv[2] == 'shared'), flush=True)\n"
    "input()"
)


class Holder:
    """Another process that holds the lock."""

    def __init__(self, path: Path, *, shared: bool) -> None:
        words = [sys.executable, "-c", HOLD, str(path), "shared" if shared else "alone"]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.has_it = self._process.stdout.readline().strip() == "True"

    def __enter__(self) -> "Holder":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._process.communicate()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def test_a_second_stack_of_one_environment_is_refused_and_names_the_first(tmp_path: Path) -> None:
    state = tmp_path / "state"

    with only_stack(state, "mine"):
        assert is_stack_running(state)
        with (
            pytest.raises(SettingsError, match=rf"'mine' runs already \(process {os.getpid()}\)"),
            only_stack(state, "mine"),
        ):
            pass

    assert not is_stack_running(state)


def test_a_stack_that_was_killed_leaves_no_lock(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with Holder(tmp_path / STACK_LOCK, shared=False) as other:
        assert other.has_it
        assert is_stack_running(tmp_path)
        other.kill()

        with only_stack(tmp_path, "mine"):
            pass


def test_asking_whether_a_stack_runs_leaves_nothing_behind(tmp_path: Path) -> None:
    assert not is_stack_running(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_stack_ends_only_when_its_last_user_is_gone_however_that_went(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    stack = FileLock(tmp_path / USERS_LOCK)
    with Holder(tmp_path / USERS_LOCK, shared=True) as one, Holder(tmp_path / USERS_LOCK, shared=True) as two:
        assert (one.has_it, two.has_it) == (True, True)
        assert not stack.take(shared=False)
        one.kill()
        assert not stack.take(shared=False)
        two.kill()
        assert stack.take(shared=False)

    stack.release()


def test_nobody_joins_a_stack_that_is_ending(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    stack = FileLock(tmp_path / USERS_LOCK)
    assert stack.take(shared=False)

    with Holder(tmp_path / USERS_LOCK, shared=True) as late:
        assert not late.has_it

    stack.release()

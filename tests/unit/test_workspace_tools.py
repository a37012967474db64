"""Tools of our own installation run with nothing of the user's surroundings."""

import sys
from pathlib import Path

import pytest

from schemas.errors import WorkspaceError
from workspace.tools import run_tool


def test_a_tool_gives_its_exit_code_and_both_outputs(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()); sys.stderr.write('é'); sys.exit(3)"

    result = run_tool([sys.executable, "-c", code], cwd=tmp_path, stdin=b"in\xff")

    assert (result.exit_code, result.stdout, result.stderr) == (3, b"in\xff", "é")


def test_a_tool_sees_nothing_of_the_user_s_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUFF_CONFIG", "/somewhere")
    code = "import os; print(os.environ.get('RUFF_CONFIG'), os.environ['HOME'] == os.getcwd())"

    assert run_tool([sys.executable, "-c", code], cwd=tmp_path).stdout == b"None True\n"


def test_a_tool_that_does_not_end_is_killed(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="did not end within 1 s and was killed"):
        run_tool([sys.executable, "-c", "while True: pass"], cwd=tmp_path, limit_s=1)


def test_a_tool_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="nothing-here cannot be started: No such file"):
        run_tool([tmp_path / "nothing-here"], cwd=tmp_path)

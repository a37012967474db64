"""Which commands are pytest, and what is added to them."""

import pytest

from tester.command import as_pytest, with_report


@pytest.mark.parametrize(
    ("command", "launcher"),
    [
        (["pytest", "-q"], 1),
        (["/venv/bin/py.test"], 1),
        (["python", "-m", "pytest", "tests"], 3),
        (["python3.12", "-X", "dev", "-W", "error", "-m", "pytest"], 7),
        (["coverage", "run", "-m", "pytest"], 4),
        (["python", "-m", "coverage", "run", "--branch", "-m", "pytest"], 7),
    ],
)
def test_pytest_is_recognised_behind_its_launchers(command: list[str], launcher: int) -> None:
    call = as_pytest(command)

    assert call is not None
    assert (call.launcher, call.arguments) == (tuple(command[:launcher]), tuple(command[launcher:]))
    assert call.sees_pythonpath


@pytest.mark.parametrize(
    "command",
    [
        ["make", "test"],
        ["python", "-m", "unittest"],
        ["python", "run_tests.py", "-m", "pytest"],
        ["python", "-m"],
        ["python"],
        ["tox", "-e", "pytest"],
        ["echo", "pytest"],
    ],
)
def test_other_commands_are_not_pytest(command: list[str]) -> None:
    assert as_pytest(command) is None


@pytest.mark.parametrize("switch", ["-I", "-E", "-sE"])
def test_a_python_that_ignores_pythonpath_gets_no_probe(switch: str) -> None:
    call = as_pytest(["python", switch, "-m", "pytest"])

    assert call is not None
    assert not call.sees_pythonpath


def test_ours_stands_behind_the_users_options_and_before_the_paths_after_two_dashes() -> None:
    call = as_pytest(["pytest", "-x", "--", "tests"])
    assert call is not None

    command = with_report(call, junit="/r/junit.xml", cache="/r/cache", probe=True)

    assert command[:2] == ("pytest", "-x")
    assert command[-2:] == ("--", "tests")
    assert {"--junitxml=/r/junit.xml", "cache_dir=/r/cache", "--maxfail=0", "rolecall_probe"} <= set(command)

"""Finding the test command of a repository."""

import pytest

from schemas.task import TestCommand
from tester.discovery import find_test_command
from workspace.view import DictView

PYTEST = ("python", "-m", "pytest", "-q")


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("pytest.ini", b""),
        ("pyproject.toml", b"[tool.pytest.ini_options]\naddopts = '-q'\n"),
        ("pyproject.toml", b"[tool.pytest]\naddopts = ['-q']\n"),
        ("tox.ini", b"[tox]\n[pytest]\n"),
        ("setup.cfg", b"[tool:pytest]\nx = %(y)s\n"),
    ],
)
def test_a_pytest_configuration_is_enough(path: str, content: bytes) -> None:
    assert find_test_command(DictView({path: content})) == TestCommand(command=PYTEST, found_in=path)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("pyproject.toml", b"[tool.ruff]\n"),
        ("pyproject.toml", b"this is not toml ["),
        ("pyproject.toml", b"tool = 'pytest'"),
        ("setup.cfg", b"[metadata]\n"),
        ("setup.cfg", b"junk \xff\x00"),
        ("README.md", b"pytest"),
    ],
)
def test_nothing_that_looks_like_a_test_is_no_command(path: str, content: bytes) -> None:
    assert find_test_command(DictView({path: content})) is None


def test_test_functions_are_for_pytest() -> None:
    files = DictView({"tests/test_a.py": b"def test_a():\n    assert True\n"})

    assert find_test_command(files) == TestCommand(command=PYTEST, found_in="tests/")


UNITTEST = b"import unittest\nclass T(unittest.TestCase):\n    def test_a(self): ...\n"


def test_unittest_cases_alone_are_for_unittest() -> None:
    files = DictView({"tests/test_a.py": UNITTEST, "setup.py": b"setup()"})

    found = find_test_command(files, python="python3")

    assert found == TestCommand(
        command=("python3", "-m", "unittest", "discover", "-s", "tests"), found_in="tests/"
    )


def test_a_package_of_unittest_cases_is_run_from_the_top() -> None:
    files = DictView({"tests/__init__.py": b"", "tests/test_a.py": UNITTEST})

    found = find_test_command(files)

    assert found is not None
    assert found.command == ("python", "-m", "unittest", "discover", "-s", "tests", "-t", ".")


@pytest.mark.parametrize("path", ["requirements-dev.txt", "requirements/test.in", "tox.ini", "conftest.py"])
def test_unittest_cases_of_a_project_that_speaks_of_pytest_are_for_pytest(path: str) -> None:
    files = DictView({"tests/test_a.py": UNITTEST, path: b"pytest>=8\n"})

    found = find_test_command(files)

    assert found is not None
    assert found.command == PYTEST


def test_a_lone_test_module_at_the_top_is_found() -> None:
    files = DictView({"test_six.py": b"import pytest\n", "six.py": b""})

    assert find_test_command(files) == TestCommand(command=PYTEST, found_in="test_six.py")

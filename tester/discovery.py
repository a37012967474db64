"""Finding out how a repository runs its tests, from its own configuration.

In order: a pytest configuration (pytest.ini, pyproject.toml, tox.ini, setup.cfg); files that look like tests, for
pytest if anything says pytest, else for unittest. Nothing is run and nothing outside the tree is looked at.
"""

import re
import tomllib
from collections.abc import Iterable, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from typing import Protocol

from schemas.task import TestCommand

# How many test files are opened to see which framework they use.
_FILES_READ = 40
_USES_PYTEST = re.compile(
    rb"^(?:\s*import pytest\b|\s*from pytest\b|def test_|async def test_)", re.MULTILINE
)
_USES_UNITTEST = re.compile(rb"^\s*(?:import unittest|from unittest\b)", re.MULTILINE)
_MENTIONS_PYTEST = re.compile(rb"\bpytest\b")
# Files that list what a project needs for its tests.
_REQUIREMENT_FILES = re.compile(
    r"pyproject\.toml|setup\.(?:py|cfg)|tox\.ini|noxfile\.py|(?:.*/)?[\w.-]*requirements[\w./-]*\.(?:txt|in)"
)


class FileReader(Protocol):
    """The files of a tree; a TreeView is one."""

    def paths(self) -> Iterable[str]:
        """All paths."""

    def read(self, path: str) -> bytes:
        """The content of one of them."""


def find_test_command(files: FileReader, *, python: str = "python") -> TestCommand | None:
    """The command that runs the tests, with the place it was found in; None if nothing looks like a test."""
    paths = sorted(files.paths())
    configured = _pytest_configuration(files, frozenset(paths))
    if configured is not None:
        return TestCommand(command=(python, "-m", "pytest", "-q"), found_in=configured)
    tests = [path for path in paths if looks_like_test(path)]
    if not tests:
        return None
    if _wants_pytest(files, paths, tests):
        return TestCommand(command=(python, "-m", "pytest", "-q"), found_in=_place_of(tests))
    return TestCommand(command=_unittest(python, tests, frozenset(paths)), found_in=_place_of(tests))


def looks_like_test(path: str) -> bool:
    """True if pytest or unittest would collect the file by its name."""
    name = path.rpartition("/")[2]
    return name.endswith(".py") and (
        name.startswith("test_") or name.endswith("_test.py") or name in ("tests.py", "test.py")
    )


def _pytest_configuration(files: FileReader, paths: frozenset[str]) -> str | None:
    for path in ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"):
        if path in paths:
            return path
    if "pyproject.toml" in paths and _has_pytest_table(files.read("pyproject.toml")):
        return "pyproject.toml"
    for path, section in (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        if path in paths and _has_section(files.read(path), section):
            return path
    return None


def _has_pytest_table(data: bytes) -> bool:
    try:
        document = tomllib.loads(data.decode("utf-8-sig"))
    except ValueError:
        return False
    tool = document.get("tool")
    return isinstance(tool, dict) and "pytest" in tool


def _has_section(data: bytes, section: str) -> bool:
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(data.decode("utf-8-sig", "replace"))
    except ConfigError:
        return False
    return parser.has_section(section)


def _wants_pytest(files: FileReader, paths: Sequence[str], tests: Sequence[str]) -> bool:
    """Anything that says pytest: a conftest.py, a requirement, an import, a test function outside a class."""
    if any(path.rpartition("/")[2] == "conftest.py" for path in paths):
        return True
    read = [files.read(path) for path in tests[:_FILES_READ]]
    if any(_USES_PYTEST.search(data) for data in read):
        return True
    required = [path for path in paths if _REQUIREMENT_FILES.fullmatch(path)]
    if any(_MENTIONS_PYTEST.search(files.read(path)) for path in required):
        return True
    return not any(_USES_UNITTEST.search(data) for data in read)


def _unittest(python: str, tests: Sequence[str], paths: frozenset[str]) -> tuple[str, ...]:
    """unittest's discovery from the folder of the tests; from the top where that folder is a package."""
    command = (python, "-m", "unittest", "discover")
    top = tests[0].partition("/")[0] if "/" in tests[0] else ""
    pattern = (
        ("-p", "*test*.py") if any(not path.rpartition("/")[2].startswith("test") for path in tests) else ()
    )
    if not top or any(path.partition("/")[0] != top for path in tests):
        return (*command, *pattern)
    package = ("-t", ".") if f"{top}/__init__.py" in paths else ()
    return (*command, "-s", top, *package, *pattern)


def _place_of(tests: Sequence[str]) -> str:
    folder = tests[0].rpartition("/")[0]
    return f"{folder}/" if folder else tests[0]

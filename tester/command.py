"""Recognising pytest in a test command, and asking it for a report per test.

What is added goes behind the user's own arguments, so that ours win where both set the same option, and the
project's `addopts` stay. A command that is not recognised runs as it is, and its exit code is all that is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

PROBE_MODULE = "rolecall_probe"
_INTERPRETER_SWITCHES_WITH_VALUE = frozenset({"-W", "-X"})
# -I and -E make Python ignore PYTHONPATH, by which the probe is found.
_HIDES_PYTHONPATH = frozenset("IE")


@dataclass(frozen=True, slots=True)
class PytestCall:
    """A command that runs pytest: what comes up to and with `pytest`, and the arguments after it."""

    launcher: tuple[str, ...]
    arguments: tuple[str, ...]
    sees_pythonpath: bool


def as_pytest(command: Sequence[str]) -> PytestCall | None:
    """The command taken apart if it starts pytest (`pytest`, `python -m pytest`, `coverage run -m pytest`), or None."""
    at = _pytest_position(command)
    if at is None:
        return None
    launcher = tuple(command[: at + 1])
    switches = [word for word in launcher[1:] if word.startswith("-") and not word.startswith("--")]
    hidden = any(_HIDES_PYTHONPATH & set(word[1:]) for word in switches if word[:2] not in ("-W", "-X", "-m"))
    return PytestCall(launcher, tuple(command[at + 1 :]), sees_pythonpath=not hidden)


def with_report(call: PytestCall, *, junit: str, cache: str, probe: bool) -> tuple[str, ...]:
    """The command that also writes JUnit XML to `junit`.

    `--continue-on-collection-errors` and `--maxfail=0`: one broken module, or an `-x` of the user, must not hide
    the other tests. The cache is moved out of the tree and not switched off, because a project's `--ff` in
    addopts would be an unknown option without it.
    """
    added = [
        f"--junitxml={junit}",
        *("-o", "junit_family=xunit2"),
        *("-o", "junit_logging=no"),
        *("-o", f"cache_dir={cache}"),
        "--continue-on-collection-errors",
        "--maxfail=0",
        *(("-p", PROBE_MODULE) if probe else ()),
    ]
    arguments = list(call.arguments)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return (*call.launcher, *arguments[:end], *added, *arguments[end:])


def _pytest_position(command: Sequence[str]) -> int | None:
    """Where `pytest` stands, as the program itself or as a module that Python (or coverage) runs."""
    if PurePosixPath(command[0]).name in ("pytest", "py.test"):
        return 0
    program = PurePosixPath(command[0]).name
    if not (program.startswith(("python", "pypy")) or program == "coverage"):
        return None
    words = list(command)
    position = 1
    while position < len(words):
        word = words[position]
        if word == "-m":
            module = words[position + 1] if position + 1 < len(words) else ""
            if module in ("pytest", "py.test"):
                return position + 1
            if module != "coverage":
                return None
            position += 2
        elif word in _INTERPRETER_SWITCHES_WITH_VALUE:
            position += 2
        elif word.startswith("-") or word == "run":
            position += 1
        else:
            return None
    return None

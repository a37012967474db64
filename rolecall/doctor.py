"""Checks of this machine, each with what was found and what to do about it."""

import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

from bus.connection_file import live_connection
from bus.owner_only import make_folder
from bus.redaction import redact_text
from bus.settings import Settings
from rolecall.client.phrases import one_line
from schemas.errors import ExitCode, RolecallError, SettingsError
from schemas.version import VERSION

MIB = 1024 * 1024
# A hub and its trees for one mid-sized repository; below it a run is likely to end with a full disk.
DISK_WISHED = 2048 * MIB
DISK_NEEDED = 256 * MIB
OLDEST_PYTHON = (3, 11)
_PACKAGES = ("aio-pika", "ast-grep-py", "pydantic", "ruff", "SQLAlchemy")

T = TypeVar("T")


class Grade(StrEnum):
    """What a finding means."""

    OK = "ok"
    """As it should be."""
    WARN = "warn"
    """Rolecall runs, but not everything or not as well."""
    FAIL = "fail"
    """Rolecall, or its tests, cannot run."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what it looked at, what it found, what to do."""

    name: str
    grade: Grade
    text: str
    advice: str = ""


def examine(settings: Settings) -> tuple[Finding, ...]:
    """Every check, in an order in which problems are best mended."""
    checks: Sequence[Callable[[Settings], Finding]] = (
        _version, _python, _git, _state, _disk, _sandbox, _broker, _stack, _engines,
    )  # fmt: skip
    return tuple(check(settings) for check in checks)


def exit_code(findings: Sequence[Finding]) -> ExitCode:
    """Failed if anything failed; warnings are no failure."""
    return ExitCode.FAILED if any(one.grade is Grade.FAIL for one in findings) else ExitCode.OK


def _version(settings: Settings) -> Finding:
    text = f"{VERSION} on {platform.system()} {platform.machine()}, environment {settings.environment}"
    return Finding("rolecall", Grade.OK, text)


def _python(_: Settings) -> Finding:
    text = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        return Finding("python", Grade.FAIL, text, "Use Python 3.11 or newer.")
    return Finding("python", Grade.OK, text)


def _git(_: Settings) -> Finding:
    from workspace.git import git_binary, git_version

    found = _tried(lambda: f"{'.'.join(map(str, git_version()))} at {git_binary()}")
    return _graded("git", found, Grade.FAIL)


def _state(settings: Settings) -> Finding:
    folder = settings.state_dir

    def look() -> str:
        make_folder(folder)
        if folder.stat().st_mode & 0o077:
            raise SettingsError(f"{folder} can be read by others.", suggestion=f"`chmod 700 {folder}`")
        return f"{folder}, yours alone"

    return _graded("state folder", _tried(look), Grade.FAIL)


def _disk(settings: Settings) -> Finding:
    folder = next(
        (one for one in (settings.state_dir, *settings.state_dir.parents) if one.exists()), Path("/")
    )
    free = shutil.disk_usage(folder).free
    text = f"{free // MIB:,} MiB free at {folder}"
    advice = "Make room, or set XDG_STATE_HOME to a larger disk."
    grade = Grade.OK if free >= DISK_WISHED else Grade.WARN if free >= DISK_NEEDED else Grade.FAIL
    return Finding("disk", grade, text, "" if grade is Grade.OK else advice)


def _sandbox(settings: Settings) -> Finding:
    from workspace.job import SandboxMode
    from workspace.sandbox import check_sandbox

    if str(settings.sandbox) == SandboxMode.NONE:
        advice = (
            "Only for repositories whose tests you would run yourself. `--sandbox bubblewrap` shuts them in."
        )
        return Finding("sandbox", Grade.WARN, "switched off (ROLECALL_SANDBOX=none)", advice)

    def run_it() -> str:
        check_sandbox(SandboxMode.BUBBLEWRAP)
        return f"bubblewrap runs ({shutil.which('bwrap')})"

    return _graded("sandbox", _tried(run_it), Grade.FAIL)


def _broker(settings: Settings) -> Finding:
    from rolecall.processes.rabbitmq_install import find_rabbitmq, need_rabbitmq

    if settings.broker_url is not None:
        return _graded("rabbitmq", _tried(lambda: _connect(settings)), Grade.FAIL)
    if find_rabbitmq() is None:
        return Finding(
            "rabbitmq",
            Grade.WARN,
            "not installed: `rolecall run` works in one process, `rolecall up` does not",
            "Install it (Debian, Ubuntu: `apt-get install rabbitmq-server`), or name a broker (ROLECALL_BROKER_URL).",
        )

    def look() -> str:
        install = need_rabbitmq()
        return f"{'.'.join(map(str, install.version)) or 'of unknown version'} at {install.script}"

    return _graded("rabbitmq", _tried(look), Grade.WARN)


def _connect(settings: Settings) -> str:
    import asyncio

    from bus.amqp import AmqpBus

    async def connect() -> None:
        bus = AmqpBus(settings.environment, settings.broker_urls, instance="doctor")
        try:
            await bus.start()
        finally:
            await bus.close()

    asyncio.run(connect())
    return f"answers at {redact_text(settings.broker_url or '')}"


def _stack(settings: Settings) -> Finding:
    def look() -> str:
        found = live_connection(settings.state_dir)
        return f"runs (process {found.pid})" if found else "nothing runs in this environment"

    return _graded("stack", _tried(look), Grade.FAIL)


def _engines(_: Settings) -> Finding:
    found, missing = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        advice = "Install Rolecall again: `pip install -e .` in its folder."
        return Finding("packages", Grade.FAIL, f"missing: {', '.join(missing)}", advice)
    return Finding("packages", Grade.OK, ", ".join(found))


def _tried(look: Callable[[], T]) -> T | RolecallError:
    try:
        return look()
    except RolecallError as error:
        return error


def _graded(name: str, found: str | RolecallError, bad: Grade) -> Finding:
    if isinstance(found, RolecallError):
        return Finding(name, bad, one_line(found.message, 600), found.suggestion)
    return Finding(name, Grade.OK, found)


def lines(findings: Sequence[Finding]) -> Iterator[tuple[Grade, str]]:
    """The findings as lines of text with their grade."""
    for one in findings:
        yield one.grade, f"{one.grade:<5} {one.name:<13} {one.text}"
        if one.advice:
            yield one.grade, f"{'':<19} {one.advice}"

"""Joining the stack of this environment, or starting one in the background that ends with its last user.

A user holds the shared lock before it looks for a stack, so a stack that it found cannot end under it. A lock that
cannot be had belongs to a stack that is ending: it is waited for, and then a new one is started.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bus.connection_file import Connection, live_connection
from bus.owner_only import make_folder
from bus.settings import Settings
from rolecall.processes.locks import USERS_LOCK, FileLock, is_stack_running
from rolecall.processes.stack import READY_LIMIT_S
from schemas.errors import BrokerUnreachableError, ExitCode, SettingsError

# What an ending stack may take: its roles drain, then the supervisor, then the broker.
ENDING_LIMIT_S = 90.0
START_LIMIT_S = READY_LIMIT_S + 30.0
_POLL_S = 0.1
_LAST_LINES = 12


@contextmanager
def joined(settings: Settings, options: Sequence[str], *, say: Callable[[str], None]) -> Iterator[Connection]:
    """A stack that lives at least as long as this; `options` are for `rolecall up` if one has to be started.

    Raises SettingsError (with the last lines of its log) or BrokerUnreachableError if none can be had.
    """
    users = FileLock(make_folder(settings.state_dir) / USERS_LOCK)
    try:
        if not users.take(shared=True):
            say("Waiting for a stack that is just ending.")
            _wait(
                lambda: users.take(shared=True), ENDING_LIMIT_S, "A stack of this environment does not end."
            )
        yield live_connection(settings.state_dir) or _started(settings, options, say)
    finally:
        users.release()


def _started(settings: Settings, options: Sequence[str], say: Callable[[str], None]) -> Connection:
    say("Starting supervisor, planner, executors, reviewer and tester.")
    log = make_folder(settings.state_dir / "logs") / "stack.log"
    process = None if is_stack_running(settings.state_dir) else _launch(settings, options, log)

    def connection() -> Connection | None:
        nonlocal process
        found = live_connection(settings.state_dir)
        if found is None and process is not None and process.poll() is not None:
            if not is_stack_running(settings.state_dir):
                raise _failure(process.returncode, log)
            process = None  # another client was quicker: its stack is the one to wait for
        return found

    limit = time.monotonic() + START_LIMIT_S
    while time.monotonic() < limit:
        found = connection()
        if found is not None:
            return found
        if process is None and not is_stack_running(settings.state_dir):
            process = _launch(settings, options, log)  # the other one ended before it was ready
        time.sleep(_POLL_S)
    raise SettingsError(f"The stack was not ready after {START_LIMIT_S:g} s.", suggestion=f"Its log: {log}")


def _launch(settings: Settings, options: Sequence[str], log: Path) -> "subprocess.Popen[bytes]":
    command = (
        sys.executable,
        "-m",
        "rolecall",
        "up",
        "--until-unused",
        "--environment",
        settings.environment,
    )
    # The broker's password goes by environment: options can be read by everyone.
    env = {**os.environ, **({"ROLECALL_BROKER_URL": settings.broker_url} if settings.broker_url else {})}
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        # A session of its own: Ctrl-C in the client's terminal is for the client.
        return subprocess.Popen(
            (*command, *options),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=handle,
            start_new_session=True,
        )
    finally:
        os.close(handle)


def _failure(code: int, log: Path) -> SettingsError:
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    said = "\n  ".join(lines[-_LAST_LINES:])
    kind = BrokerUnreachableError if code == ExitCode.BROKER_UNREACHABLE else SettingsError
    return kind(f"The stack did not start. It said:\n  {said}", suggestion=f"\nAll of it: {log}")


def _wait(is_true: Callable[[], bool], limit_s: float, complaint: str) -> None:
    limit = time.monotonic() + limit_s
    while not is_true():
        if time.monotonic() > limit:
            raise SettingsError(complaint, suggestion="`ps` shows processes named `rolecall up`.")
        time.sleep(_POLL_S)

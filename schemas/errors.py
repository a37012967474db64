"""One family of errors; the class says who has to act, the text says what to do next.

`ContractError` the sender · `SettingsError` the operator · `WorkspaceError` the executor's machine ·
`ModelError` nobody now, retry later. An attempt that failed is not an error but a handoff with an outcome.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum


class ExitCode(IntEnum):
    """How a command of ours ends; the numbers are a promise to scripts."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PARTLY_LANDED = 3
    WAITS_FOR_APPROVAL = 4
    CANCELED = 5
    BROKER_UNREACHABLE = 6


class RolecallError(Exception):
    """The root: carries its message, an optional suggestion, and the exit code of a command it ends."""

    exit_code = ExitCode.FAILED

    def __init__(self, message: str, *, suggestion: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion

    def __str__(self) -> str:
        between = "\n" if "\n" in self.message else " "
        return f"{self.message}{between}{self.suggestion}".rstrip()


class ContractError(RolecallError):
    """A message, recipe or input that its contract does not allow: the sender mends it.

    `place` leads to what is wrong in an input, key by key; empty if it is about the whole.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, *, suggestion: str = "", place: Sequence[str | int] = ()) -> None:
        super().__init__(message, suggestion=suggestion)
        self.place = tuple(place)


class RecipeError(ContractError):
    """A recipe's file is wrong; the message begins with file and, where there is one, line."""


@contextmanager
def at_key(*place: str | int) -> Iterator[None]:
    """What is refused in here, and does not know its place better, is wrong at this place of the input."""
    try:
        yield
    except ContractError as error:
        error.place = error.place or place
        raise


class SettingsError(RolecallError):
    """A setting, tool or permission is missing or wrong: the operator mends it."""

    exit_code = ExitCode.USAGE


class BrokerUnreachableError(SettingsError):
    """The broker does not answer, or does not let us in."""

    exit_code = ExitCode.BROKER_UNREACHABLE


class WorkspaceError(RolecallError):
    """Git, the sandbox or the disk of the machine that does the work refused."""


class WorkerLostError(WorkspaceError):
    """The child process that did the work died; `last_lines` is the end of what it wrote to stderr."""

    def __init__(self, message: str, *, last_lines: str = "", suggestion: str = "") -> None:
        super().__init__(message, suggestion=suggestion)
        self.last_lines = last_lines


class ModelError(RolecallError):
    """A model provider failed; the same request may work later."""

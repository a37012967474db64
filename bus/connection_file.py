"""The connection file: how a second terminal of the same user finds the running stack without any option.

It holds the broker's password, so it is owner-only; and it names the process that wrote it, so that a file left
behind by a stack that is gone is not believed.
"""

from pathlib import Path

from pydantic import Field, ValidationError

from bus.instance import is_alive
from bus.owner_only import read_owner_only, write_owner_only
from schemas.base import Tolerant
from schemas.errors import SettingsError

FILE_NAME = "connection.json"


class Connection(Tolerant):
    """Where the running stack of an environment is, and who runs it.

    `public_key` is hexadecimal; `pid` and `started_at` (microseconds UTC, see `bus.instance.started_us`) name the
    process that owns the stack.
    """

    broker_url: str = Field(repr=False)
    hub: str
    public_key: str = Field(pattern=r"^[0-9a-f]{64}$")
    pid: int = Field(gt=0)
    started_at: int

    def is_live(self) -> bool:
        """True while the process that wrote this runs."""
        return is_alive(self.pid, self.started_at)


def write_connection(state_dir: Path, connection: Connection) -> Path:
    """Publish where the stack is; returns the file's path."""
    path = state_dir / FILE_NAME
    write_owner_only(path, connection.model_dump_json(indent=2).encode() + b"\n")
    return path


def read_connection(state_dir: Path) -> Connection | None:
    """What the file says, or None if there is none. Raises SettingsError if it is not safe to use or not readable."""
    path = state_dir / FILE_NAME
    try:
        raw = read_owner_only(path)
    except FileNotFoundError:
        return None
    try:
        return Connection.model_validate_json(raw)
    except ValidationError as error:
        raise SettingsError(
            f"{path} is not a connection file of this version.",
            suggestion=f"`rm {path}` and start `rolecall up` again.",
        ) from error


def live_connection(state_dir: Path) -> Connection | None:
    """The running stack of this environment, or None if nothing runs."""
    connection = read_connection(state_dir)
    return connection if connection is not None and connection.is_live() else None


def remove_connection(state_dir: Path, connection: Connection) -> None:
    """Take the file away if it is still this stack's own."""
    if read_connection(state_dir) == connection:
        (state_dir / FILE_NAME).unlink(missing_ok=True)

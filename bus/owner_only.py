"""Files that only their owner may read: keys and passwords.

Rules: a file has its mode before it has its first byte; it is replaced whole, so a reader sees the old one or the
new one; it is read only if nobody else could have read it, written it, or put it there.
"""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from schemas.errors import SettingsError


def make_folder(folder: Path) -> Path:
    """Create a folder that only its owner can enter.

    Raises SettingsError if it exists and others can write in it, or if it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"The folder {folder} cannot be made: {error.strerror}.",
            suggestion="State lies in $XDG_STATE_HOME/rolecall, else in ~/.local/state/rolecall: it must be writable.",
        ) from error
    _check_folder(folder)
    return folder


def write_owner_only(path: Path, data: bytes) -> None:
    """Replace the file as a whole, on disk before it gets its name."""
    make_folder(path.parent)
    # mkstemp creates with mode 0600 and O_EXCL, so nobody gets a look in between.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def read_owner_only(path: Path) -> bytes:
    """The file's bytes. Raises FileNotFoundError, or SettingsError if someone else could have a hand in it."""
    try:
        # Nothing else in its place may be followed or waited for (a link, a pipe).
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be opened: {error.strerror}.",
            suggestion="It must be a plain file of your own; remove it and start again.",
        ) from error
    try:
        _check_file(path, os.fstat(handle))
        _check_folder(path.parent)
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def _check_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise SettingsError(f"{path} is not a plain file.", suggestion="Remove it and start again.")
    if found.st_uid != os.geteuid():
        raise SettingsError(
            f"{path} belongs to user {found.st_uid}, not to you ({os.geteuid()}).",
            suggestion="Use an environment of your own (ROLECALL_ENVIRONMENT).",
        )
    if found.st_mode & 0o077:
        raise SettingsError(
            f"{path} can be used by others (mode {stat.S_IMODE(found.st_mode):04o}), and it holds secrets.",
            suggestion=f"`chmod 600 {path}`, and change the password if others work on this machine.",
        )


def _check_folder(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise SettingsError(
            f"{folder} can be written by others (owner {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o}).",
            suggestion=f"`chmod 700 {folder}`, or set XDG_STATE_HOME to a folder of your own.",
        )

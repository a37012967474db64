"""Reading files that foreign code wrote: only plain files, only up to a limit, and never through a link.

The tests of a repository can put a link, a pipe or gigabytes where a report is expected.
"""

import os
import stat
from pathlib import Path

from schemas.errors import WorkspaceError


def read_report(path: Path, *, limit_bytes: int) -> bytes | None:
    """The content, or None if nothing is there. Raises WorkspaceError for what is no plain file, or too large."""
    try:
        # O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WorkspaceError(f"{path.name} cannot be read ({error.strerror}).") from error
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise WorkspaceError(f"{path.name} is not a plain file.")
        if found.st_size > limit_bytes:
            size = found.st_size
            raise WorkspaceError(f"{path.name} has {size} bytes, more than the {limit_bytes} that are read.")
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(limit_bytes)
    finally:
        os.close(handle)

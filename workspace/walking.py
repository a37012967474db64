"""Walking and removing folders in which foreign code has worked: no link is followed, nothing in them is trusted."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from schemas.errors import WorkspaceError

# Ten times the largest repositories we were built on; more is a command that ran wild.
MOST_FILES = 2_000_000
MOST_DEPTH = 400


@dataclass(slots=True)
class Found:
    """What a walk met: everything that is no folder by path, and the folders (without the top)."""

    files: dict[bytes, os.stat_result] = field(default_factory=dict)
    folders: dict[bytes, os.stat_result] = field(default_factory=dict)
    too_deep: list[bytes] = field(default_factory=list)


def walk(top: Path, *, enter: Callable[[bytes], bool] = lambda _: True) -> Found:
    """Everything below `top`, by paths relative to it; a folder that `enter` refuses is told but not entered.

    Folders that lost their permissions get them back. Raises WorkspaceError for an absurd number of files.
    """
    found = Found()
    root = os.fsencode(top)
    pending = [b""]
    while pending:
        prefix = pending.pop()
        for entry in _scan(root + b"/" + prefix):
            path = prefix + entry.name
            status = entry.stat(follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                found.files[path] = status
                continue
            found.folders[path] = status
            if path.count(b"/") >= MOST_DEPTH or len(path) > 3500:
                found.too_deep.append(path)
            elif enter(path):
                pending.append(path + b"/")
        if len(found.files) + len(found.folders) > MOST_FILES:
            raise WorkspaceError(f"More than {MOST_FILES} files were left in {top}.")
    return found


def remove_tree(top: Path) -> None:
    """Delete a folder with all that is in it, whatever permissions and depth it was given."""
    for attempt in (_plainly, _with_permissions, _with_rm):
        with suppress(OSError, RecursionError):
            attempt(top)
        if not top.is_symlink() and not top.exists():
            return
    raise WorkspaceError(f"{top} cannot be deleted.", suggestion="See who owns what is in it.")


def _scan(folder: bytes) -> list[os.DirEntry[bytes]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except PermissionError:
        # It was a folder when we looked, and whoever could have swapped it for a link is dead by now.
        os.chmod(folder, 0o700)
        with os.scandir(folder) as entries:
            return list(entries)


def _plainly(top: Path) -> None:
    shutil.rmtree(top)


def _with_permissions(top: Path) -> None:
    top.chmod(0o700)
    for path in walk(top).folders:
        os.chmod(os.fsencode(top) + b"/" + path, 0o700)
    shutil.rmtree(top)


def _with_rm(top: Path) -> None:
    # Python's own removal gives up below a thousand folders in folders.
    subprocess.run(
        ["rm", "-rf", "--one-file-system", "--", str(top)], check=False, timeout=600, capture_output=True
    )

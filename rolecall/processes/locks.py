"""Who may start a stack, and who still needs it: two locks in the state folder that the kernel frees with their holder.

stack.lock    held alone by the stack of this environment, as long as it lives
stack.users   held together by everybody who needs the stack; a stack that shall end with its last user takes it
              alone, and keeps it while it ends: nobody can join a stack that is dying
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bus.owner_only import make_folder
from schemas.errors import SettingsError

STACK_LOCK = "stack.lock"
USERS_LOCK = "stack.users"


@dataclass
class FileLock:
    """A lock on a file that is not inherited by children; closed with its holder."""

    path: Path
    _handle: int = -1

    def take(self, *, shared: bool) -> bool:
        """Take the lock if it is free for this use; True if it is held now."""
        if self._handle < 0:
            make_folder(self.path.parent)
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def write(self, text: str) -> None:
        """Leave a note in the file (the holder's pid) for people."""
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, text.encode(), 0)

    def release(self) -> None:
        """Let go."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


@contextmanager
def only_stack(state_dir: Path, environment: str) -> Iterator[FileLock]:
    """Be the one stack of this environment. Raises SettingsError if there is one."""
    lock = FileLock(state_dir / STACK_LOCK)
    try:
        if not lock.take(shared=False):
            pid = lock.path.read_text("utf-8", "replace").strip() or "unknown"
            raise SettingsError(
                f"A stack of environment {environment!r} runs already (process {pid}).",
                suggestion="Use it: `rolecall run` joins it, `rolecall ps` shows it. "
                "For a second one choose another name with --environment.",
            )
        lock.write(f"{os.getpid()}\n")
        yield lock
    finally:
        lock.release()


def is_stack_running(state_dir: Path) -> bool:
    """True while some process is the stack, ready or not."""
    lock = FileLock(state_dir / STACK_LOCK)
    if not lock.path.exists():
        return False
    try:
        return not lock.take(shared=True)
    finally:
        lock.release()

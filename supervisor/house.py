"""The supervisor's house: its state folder, locked by one supervisor, with hub, journal and signing key in it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bus.grants import SigningKey
from bus.owner_only import make_folder
from schemas.errors import SettingsError
from supervisor.journal.journal import Journal
from workspace.hub import Hub

JOURNAL_FILE = "journal.sqlite"
HUB_FOLDER = "hub.git"
LOCK_FILE = "supervisor.lock"
KEY_FILE = Path("keys") / "grants.ed25519"


@dataclass(frozen=True, slots=True)
class House:
    """What one supervisor owns while it holds the lock. `epoch` is higher than that of any before it."""

    journal: Journal
    hub: Path
    key: SigningKey
    epoch: int


@contextmanager
def opened_house(state_dir: Path, hub: str | None = None) -> Iterator[House]:
    """Lock and open the state folder. Raises SettingsError if another supervisor has it or something is not usable."""
    make_folder(state_dir)
    with _locked(state_dir):
        key = SigningKey.load_or_create(state_dir / KEY_FILE)
        place = Path(hub) if hub else state_dir / HUB_FOLDER
        Hub.create(place).close()
        journal = Journal.open(state_dir / JOURNAL_FILE)
        try:
            yield House(journal, place, key, journal.next_epoch())
        finally:
            journal.close()


@contextmanager
def _locked(state_dir: Path) -> Iterator[None]:
    # The lock goes with the process, however it ends.
    handle = os.open(state_dir / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise SettingsError(
            f"Another supervisor works in {state_dir}.",
            suggestion="Use that one, stop it first, or choose another environment (ROLECALL_ENVIRONMENT).",
        ) from error
    try:
        # Readers of this machine find the process by it (the lock itself tells whether it lives).
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)

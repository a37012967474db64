"""The process that does a slot's work: `python -m workspace.child FD PARENT`, started by `workspace.children`.

It reads its settings, then one action after the other, and answers each with notes and a handoff or an error. It
dies with its parent. Whatever a work function prints goes to the slot's log, never between the messages.
"""

import ctypes
import gc
import os
import socket
import sys
import tempfile
import traceback
from importlib import import_module
from pathlib import Path
from signal import SIGKILL
from threading import Lock
from typing import Any

from schemas.action import Action
from schemas.errors import ContractError, ModelError, RolecallError, SettingsError, WorkspaceError
from schemas.handoff import Handoff
from workspace.frames import pack_frame, read_frame
from workspace.hub import Hub
from workspace.job import SandboxMode
from workspace.spill import spill
from workspace.trees import TreeKeeper
from workspace.walking import remove_tree
from workspace.work import Handle, WorkContext

_PR_SET_PDEATHSIG = 1
# Heartbeats carry the last note; a longer one is not a note.
_LONGEST_NOTE = 200
# The errors that say who must act, and so travel as what they are.
ACTED_ON: tuple[type[RolecallError], ...] = (ContractError, SettingsError, ModelError, WorkspaceError)


class _Channel:
    """Our end of the socket; notes may come from any thread of a work function."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        # Neither git nor a job may hold it: its end is how the parent learns of our death.
        self._socket.set_inheritable(False)
        self._socket.setblocking(True)
        self._stream = self._socket.makefile("rb")
        self._lock = Lock()

    def receive(self) -> dict[str, Any] | None:
        return read_frame(self._stream)

    def send(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._socket.sendall(pack_frame(message))


def main(arguments: list[str]) -> int:
    """Work until the parent closes the channel."""
    fd, parent = (int(argument) for argument in arguments)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != parent:
        return 1
    channel = _Channel(fd)
    settings = channel.receive()
    if settings is None:
        return 0
    worker = _Worker(settings, channel)
    # Engines make many small objects that live as long as their file: looking for cycles among them every 700 takes
    # an eighth of a rewrite's time.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    while (message := channel.receive()) is not None:
        channel.send(worker.answer(message) | {"rss_bytes": _rss_bytes()})
    return 0


class _Worker:
    """A work function, and what lives from one action to the next: the hub, the caches, its loaded modules."""

    def __init__(self, settings: dict[str, Any], channel: _Channel) -> None:
        self._settings = settings
        self._channel = channel
        self._hub: Hub | None = None
        self._trees: TreeKeeper | None = None
        module, _, function = str(settings["work"]).partition(":")
        self._handle: Handle = getattr(import_module(module), function)

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """The frame that ends an action: a handoff, an error of ours, or a fault."""
        try:
            handoff = self._work(Action.model_validate(message["action"]))
            return {"handoff": handoff.model_dump(mode="python")}
        except RolecallError as error:
            # Subclasses carry data of their own; the class that says who must act is what the parent needs.
            kind = next((one for one in ACTED_ON if isinstance(error, one)), WorkspaceError)
            return {"error": kind.__name__, "message": error.message, "suggestion": error.suggestion}
        except Exception as error:
            # A fault of the work function ends one attempt, not the worker: the parent says so in the handoff.
            return {"fault": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}

    def _work(self, action: Action) -> Handoff:
        scratch = Path(tempfile.mkdtemp(prefix="action-", dir=self._settings["scratch"]))
        try:
            hub, trees = self._open_hub()
            hub.ensure(action.base)
            context = WorkContext(
                hub=hub,
                scratch=scratch,
                cache=Path(self._settings["cache"]),
                trees=trees,
                note=self._note,
                sandbox=SandboxMode(self._settings["sandbox"]),
                options=self._settings["options"],
            )
            return spill(self._handle(action, context), hub, action.task)
        finally:
            remove_tree(scratch)

    def _open_hub(self) -> tuple[Hub, TreeKeeper]:
        """Opened once; a hub that was not there is looked for again by the next action."""
        if self._hub is None or self._trees is None:
            self._hub = Hub.open(self._settings["hub"], cache_dir=Path(self._settings["cache"], "hubs"))
            self._trees = TreeKeeper(self._hub, Path(self._settings["scratch"], "trees"))
        return self._hub, self._trees

    def _note(self, text: str) -> None:
        self._channel.send({"note": text[:_LONGEST_NOTE]})


def _rss_bytes() -> int:
    """How much memory this process holds now."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A warm child process per slot: what computes runs there, and what must end is killed there.

The event loop of a role stays free for the bus. A child lives from action to action with its modules loaded, until it
has done its share or grown too large. Cancelling kills the child with everything that it started, however deep, and
returns only when that is done; a child that dies by itself ends its action, never the role.
"""

import asyncio
import os
import select
import socket
import subprocess
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

import structlog

from schemas.action import Action
from schemas.errors import RolecallError, WorkerLostError, WorkspaceError
from schemas.handoff import Handoff
from workspace.child import ACTED_ON
from workspace.child_start import PYTHON, child_environment
from workspace.frames import LENGTH, frame_length, pack_frame, unpack_frame
from workspace.job import SandboxMode
from workspace.killing import MARK, kill_family, kill_orphans
from workspace.walking import remove_tree

log = structlog.get_logger()

# Memory that an engine never gives back, caches that only grow: a fresh child costs a second.
RECYCLE_AFTER_ACTIONS = 200
RECYCLE_OVER_BYTES = 1536 * 1024 * 1024
# The end of what a dead child wrote that travels in an error.
_LAST_BYTES = 4 * 1024
# A chatty work function must not fill the disk with its log.
_LARGEST_LOG_BYTES = 8 * 1024 * 1024
_WAIT_S = 10.0
_SETTLE_S = 1.0
_NUMBERS = count()

OnNote = Callable[[str], None]


class WorkFaultError(Exception):
    """The work function raised what is no error of ours: a fault in it, told with its traceback."""


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """What every child of a role needs.

    `work` is its function as `module:function`. `scratch` is this process's own folder and is deleted at the end;
    `cache` stays and is shared by its slots. `hub` is a path or URL.
    """

    work: str
    hub: str
    scratch: Path
    cache: Path
    sandbox: SandboxMode = SandboxMode.BUBBLEWRAP
    options: Mapping[str, Any] = field(default_factory=dict)


class ChildWorkers:
    """Runs actions in child processes, one per slot, which are started at once so that the first action is quick."""

    def __init__(
        self,
        settings: ChildSettings,
        slots: int,
        *,
        recycle_after: int = RECYCLE_AFTER_ACTIONS,
        recycle_over_bytes: int = RECYCLE_OVER_BYTES,
    ) -> None:
        self._settings = settings
        self._recycle_after = recycle_after
        self._recycle_over_bytes = recycle_over_bytes
        self._is_closed = False
        kill_orphans()
        settings.cache.mkdir(parents=True, exist_ok=True)
        self._children: list[_Child | None] = [_Child(settings, slot) for slot in range(slots)]

    async def __aenter__(self) -> "ChildWorkers":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def run(self, slot: int, action: Action, on_note: OnNote) -> Handoff:
        """Do the work in the slot's child. When cancelled, all that it started is killed before this returns.

        Raises WorkerLostError if the child died, another RolecallError or WorkFaultError as the work function did.
        """
        child = self._children[slot]
        if child is None or not child.is_alive:
            child = await self._replace(slot)
        try:
            answer = await child.ask(action, on_note)
        except asyncio.CancelledError:
            await _to_the_end(self._replace(slot))
            raise
        except (OSError, EOFError, WorkspaceError) as error:
            raise await self._lost(child, error) from error
        if child.actions >= self._recycle_after or answer.get("rss_bytes", 0) > self._recycle_over_bytes:
            await self._replace(slot)
        return _handoff(answer, self._settings.work)

    async def close(self) -> None:
        """Kill the children and delete their folders."""
        self._is_closed = True
        children = [child for child in self._children if child is not None]
        self._children = [None] * len(self._children)
        await asyncio.gather(*(child.kill() for child in children))
        await asyncio.to_thread(remove_tree, self._settings.scratch)

    async def _replace(self, slot: int) -> "_Child":
        """A fresh child in the slot; what was there is killed with all that it started."""
        child, self._children[slot] = self._children[slot], None
        if child is not None:
            await child.kill()
        if self._is_closed:
            raise WorkspaceError("The workers of this process are closed.")
        fresh = self._children[slot] = _Child(self._settings, slot)
        return fresh

    async def _lost(self, child: "_Child", error: Exception) -> WorkerLostError:
        """A dead child is replaced by the next action only: one that dies at its start would do so for ever."""
        self._children[child.slot] = None
        # The channel closes a moment before the process is gone; killed now, it would not tell how it died.
        await _to_the_end(asyncio.to_thread(child.wait_for_its_end, _SETTLE_S))
        await _to_the_end(child.kill())
        last_lines = child.last_lines()
        how = str(error) if isinstance(error, WorkspaceError) else child.how_it_died()
        log.warning(
            "The worker of slot %s was lost: %s", child.slot, how, action="worker_lost", last_lines=last_lines
        )
        return WorkerLostError(f"The worker was lost: {how}.", last_lines=last_lines)


class _Child:
    """One child process and the channel to it."""

    def __init__(self, settings: ChildSettings, slot: int) -> None:
        self.slot = slot
        self.actions = 0
        self._scratch = settings.scratch / f"slot-{slot}"
        self._log = settings.scratch / f"slot-{slot}.log"
        self._killing = Lock()
        # For the next process of ours on this machine: should this one be killed, it ends what was left.
        self._mark = f"{os.getpid()}-child-{next(_NUMBERS)}."
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        remove_tree(self._scratch)
        self._scratch.mkdir(parents=True)
        self._settings = _as_message(settings, self._scratch)
        ours, theirs = socket.socketpair()
        with theirs, self._log.open("ab") as log_file:
            self._process = subprocess.Popen(
                [*PYTHON, "-m", "workspace.child", str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                pass_fds=(theirs.fileno(),),
                env=child_environment() | {MARK: self._mark},
                start_new_session=True,
            )
        ours.setblocking(False)
        self._socket = ours

    @property
    def is_alive(self) -> bool:
        """True while the process runs. It is not reaped by this: its number must stay its own until it is killed."""
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def wait_for_its_end(self, limit_s: float) -> None:
        """Wait until the process has ended, without reaping it."""
        with suppress(ProcessLookupError):
            end_fd = os.pidfd_open(self._process.pid)
            try:
                select.select([end_fd], [], [], limit_s)
            finally:
                os.close(end_fd)

    async def ask(self, action: Action, on_note: OnNote) -> dict[str, Any]:
        """Send an action, pass its notes on, give back the last answer. Raises EOFError or OSError when it dies."""
        self.actions += 1
        reader, writer = await self._connected()
        writer.write(pack_frame({"action": action.model_dump(mode="python")}))
        await writer.drain()
        while True:
            head = await reader.readexactly(LENGTH.size)
            message = unpack_frame(await reader.readexactly(frame_length(head)))
            if "note" not in message:
                self._shorten_log()
                return message
            on_note(str(message["note"]))

    async def kill(self) -> None:
        """Kill the process and all that it started; what it left in its folder goes too."""
        if self._streams is not None:
            self._streams[1].transport.abort()
        else:
            self._socket.close()
        await asyncio.to_thread(self._kill)

    def how_it_died(self) -> str:
        """The end of the process in words."""
        code = self._process.returncode
        return f"it was killed by signal {-code}" if code and code < 0 else f"it ended with exit code {code}"

    def last_lines(self) -> str:
        """The end of what it wrote."""
        with suppress(OSError), self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - _LAST_BYTES))
            return file.read().decode("utf-8", "replace")
        return ""

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(sock=self._socket)
            self._streams[1].write(pack_frame(self._settings))
        return self._streams

    def _kill(self) -> None:
        with self._killing:
            if self._process.returncode is None:
                # One that died by itself keeps its code; what it left behind is killed.
                kill_family(self._process.pid, self._mark)
                self._process.wait(_WAIT_S)
            remove_tree(self._scratch)

    def _shorten_log(self) -> None:
        if self._log.stat().st_size > _LARGEST_LOG_BYTES:
            os.truncate(self._log, 0)


async def _to_the_end(work: Coroutine[Any, Any, object]) -> None:
    """Await to the end, however often we are cancelled meanwhile: what is half killed is not killed."""
    task = asyncio.create_task(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task})
    if error := task.exception():
        log.error("A worker could not be replaced: %s", error, action="worker_not_replaced")


def _handoff(answer: dict[str, Any], work: str) -> Handoff:
    if "handoff" in answer:
        return Handoff.model_validate(answer["handoff"])
    if "error" in answer:
        raise _error(answer)
    log.error(
        "%s failed: %s", work, answer.get("fault"), action="work_failed", traceback=answer.get("traceback")
    )
    raise WorkFaultError(str(answer.get("fault")))


def _error(answer: dict[str, Any]) -> RolecallError:
    """The error of the child, of the class that says who must act."""
    kind = next((one for one in ACTED_ON if one.__name__ == answer["error"]), WorkspaceError)
    return kind(str(answer["message"]), suggestion=str(answer.get("suggestion", "")))


def _as_message(settings: ChildSettings, scratch: Path) -> dict[str, Any]:
    return {
        "work": settings.work,
        "hub": settings.hub,
        "scratch": str(scratch),
        "cache": str(settings.cache),
        "sandbox": str(settings.sandbox),
        "options": dict(settings.options),
    }

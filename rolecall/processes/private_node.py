"""A private RabbitMQ node: started, or found running and adopted; stopped when its last user leaves.

Two nodes on one folder would both open the same queues, and RabbitMQ does not prevent it. So there is one lock on the
folder. Whoever starts a node takes it, and the node inherits it: the lock is held exactly while somebody starts a node
or a node lives, also after `kill -9` of whoever started it. Whoever finds it held looks for the node and adopts it, or
stops it if it does not answer. A process is only ever signalled by pid *and* start time.
"""

import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import psutil

from bus.instance import is_alive, started_us
from rolecall.processes.node_folder import HOST, NodeFolder, NodeRecord, free_ports
from rolecall.processes.rabbitmq_install import lean_view, need_rabbitmq
from schemas.errors import SettingsError

# A node starts in 4 s on a quiet laptop; a machine that is busy with our own tests takes several times that.
START_LIMIT_S = 60.0
# A node that holds the lock and does not answer this long is not starting any more.
ADOPT_LIMIT_S = 30.0
STOP_LIMIT_S = 20.0
_POLL_S = 0.05


@dataclass(eq=False)
class PrivateNode:
    """A live node. `was_running` says that it was found, not started."""

    folder: Path
    url: str = field(repr=False)
    pid: int
    started_at: int
    was_running: bool

    @property
    def rabbitmqctl(self) -> Path:
        """The broker's own tool, for this node."""
        return NodeFolder(self.folder).rabbitmqctl

    @property
    def is_alive(self) -> bool:
        """True while the process runs; whether it answers is another matter."""
        return is_alive(self.pid, self.started_at)

    def stop(self) -> None:
        """End the node: asked first, killed after a limit. Its queues and ports stay for the next start."""
        self._end(signal.SIGTERM, signal.SIGKILL)

    def kill(self) -> None:
        """End the node at once, as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, *signals: signal.Signals) -> None:
        for one in signals:
            if self.is_alive:
                with suppress(ProcessLookupError):
                    os.kill(self.pid, one)
            if _wait(lambda: not self.is_alive, STOP_LIMIT_S):
                break
        lock = NodeFolder(self.folder).lock
        if not _wait(lambda: not _is_locked(lock), STOP_LIMIT_S):
            raise SettingsError(
                f"The node of {self.folder} was stopped, but a process still holds {lock}.",
                suggestion=f"`fuser {lock}` names it.",
            )


def start_node(folder: Path) -> PrivateNode:
    """The node of this folder: found running, or started. Its ports stay the same as long as they are free.

    Raises SettingsError if RabbitMQ is missing, or does not start (with the end of its log).
    """
    files = NodeFolder(folder.absolute())
    files.prepare()
    with _opened(files.lock) as lock:
        while not _try_lock(lock):
            running = _adopt(files)
            if running is not None:
                return running
        return _launch(files, lock)


def running_node(folder: Path) -> PrivateNode | None:
    """The node of this folder if it runs and answers; starts nothing."""
    files = NodeFolder(folder.absolute())
    return _running(files) if files.lock.exists() and _is_locked(files.lock) else None


def _launch(files: NodeFolder, lock: int) -> PrivateNode:
    install = need_rabbitmq()
    # A view of ours that a future RabbitMQ does not like must not be the reason that nothing starts.
    lean = lean_view(install, files.path / "lean")
    for scripts in (lean, install.script.parent) if lean is not None else (install.script.parent,):
        node = _try_launch(files, scripts, lock, is_lean=scripts == lean)
        if node is not None:
            return node
    raise SettingsError(
        f"RabbitMQ ({install.script}) does not start in {files.path}. It said:\n{files.last_words()}",
        suggestion=f"More is in {files.console.parent}.",
    )


def _try_launch(files: NodeFolder, scripts: Path, lock: int, *, is_lean: bool) -> PrivateNode | None:
    known = files.record()
    amqp_port, distribution_port = free_ports(
        [known.amqp_port, known.distribution_port] if known else [None, None]
    )
    record = NodeRecord(amqp_port=amqp_port, distribution_port=distribution_port)
    # Before the process: if we are killed right after starting it, the next start knows where it answers.
    files.remember(record)
    with files.console.open("wb") as console:
        process = subprocess.Popen(
            [str(scripts / "rabbitmq-server")],
            env=files.configure(record, scripts, is_lean=is_lean),
            cwd=files.path,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            pass_fds=[lock],
            start_new_session=True,
        )
    started_at = started_us(process.pid) or 0
    files.remember(record.model_copy(update={"pid": process.pid, "started_at": started_at}))
    # A thread reaps it: the node may outlive everything here, and a zombie would hide that it ended.
    reaper = Thread(target=process.wait, name="reap private node", daemon=True)
    reaper.start()
    if _wait(lambda: _answers(record) or not reaper.is_alive(), START_LIMIT_S) and reaper.is_alive():
        return PrivateNode(files.path, files.url(record), process.pid, started_at, was_running=False)
    # The whole group: before the script becomes the node, there may be helpers of it.
    if reaper.is_alive():
        os.killpg(process.pid, signal.SIGKILL)
        reaper.join(STOP_LIMIT_S)
    return None


def _adopt(files: NodeFolder) -> PrivateNode | None:
    """The node that holds the lock; None once nobody holds it. One that does not answer is stopped."""
    found: list[PrivateNode] = []

    def is_settled() -> bool:
        node = _running(files)
        if node is not None:
            found.append(node)
        return bool(found) or not _is_locked(files.lock)

    if _wait(is_settled, ADOPT_LIMIT_S):
        return found[0] if found else None
    for pid in _holders(files.lock):
        started_at = started_us(pid)
        if started_at is not None:
            PrivateNode(files.path, "", pid, started_at, was_running=True).stop()
    if _is_locked(files.lock):
        raise SettingsError(
            f"Another process holds {files.lock}, and no RabbitMQ answers for it.",
            suggestion=f"`fuser {files.lock}` names it; end it and try again.",
        )
    return None


def _running(files: NodeFolder) -> PrivateNode | None:
    record = files.record()
    if record is None or not _answers(record):
        return None
    pid, started_at = record.pid, record.started_at
    if pid is None or started_at is None or not is_alive(pid, started_at):
        # Whoever started it was killed before it could write down the process: the lock's holder is the node.
        pid = next(iter(_holders(files.lock)), None)
        started_at = started_us(pid) if pid is not None else None
    if pid is None or started_at is None:
        return None
    files.remember(record.model_copy(update={"pid": pid, "started_at": started_at}))
    return PrivateNode(files.path, files.url(record), pid, started_at, was_running=True)


def _answers(record: NodeRecord) -> bool:
    """True if an AMQP broker answers at the port."""
    with suppress(OSError), socket.create_connection((HOST, record.amqp_port), timeout=1.0) as connection:
        connection.settimeout(2.0)
        connection.sendall(b"AMQP\x00\x00\x09\x01")
        # A method frame on channel 0: connection.start.
        return connection.recv(3) == b"\x01\x00\x00"
    return False


def _holders(lock: Path) -> Iterator[int]:
    """The Erlang processes that have the lock file open (whoever only waits for the lock is not one)."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if "beam" in process.name() and any(Path(file.path) == lock for file in process.open_files()):
                yield process.pid


@contextmanager
def _opened(lock: Path) -> Iterator[int]:
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        # Ours only: the node's copy of the same lock stays.
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_locked(lock: Path) -> bool:
    with _opened(lock) as handle:
        if not _try_lock(handle):
            return True
        fcntl.flock(handle, fcntl.LOCK_UN)
        return False


def _wait(is_true: Callable[[], bool], limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True

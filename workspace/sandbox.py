"""Running a command that nobody trusts: shut in, limited, and killed with all that it started.

Every wait has a limit. Output is taken while it comes, so that a flood fills neither memory nor disk.
"""

import json
import os
import selectors
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from math import ceil
from pathlib import Path
from signal import SIGKILL, SIGXCPU
from time import monotonic
from typing import BinaryIO

from schemas.errors import WorkspaceError
from workspace.bubblewrap import HOME, SYSTEM_PATH, bubblewrap, bubblewrap_command
from workspace.capture import Capture, open_log
from workspace.cgroups import JobGroup, job_group
from workspace.job import SandboxJob, SandboxLimits, SandboxMode, SandboxResult, Stop
from workspace.killing import MARK, kill_group, kill_marked
from workspace.launcher import CANNOT_RUN
from workspace.spent import LauncherReport, Spent, spent_by, spent_until_now

_LAUNCHER = Path(__file__).with_name("launcher.py")
_NUMBERS = count()
# After the end of a job its output is closed at once; a daemon that is being killed may take this long.
_DRAIN_S = 5.0
_CHUNK_BYTES = 1 << 16


def check_sandbox(mode: SandboxMode) -> None:
    """Raises SettingsError, with what to do, if jobs cannot be run in this mode on this machine."""
    if mode is SandboxMode.BUBBLEWRAP:
        bubblewrap()


def tree_inside(job: SandboxJob, mode: SandboxMode) -> Path:
    """Where the job's command finds its tree; without a sandbox nothing can be bound over a checkout."""
    return job.checkout if job.checkout is not None and mode is SandboxMode.BUBBLEWRAP else job.tree


def job_path(env: Mapping[str, str], environment: Path | None, mode: SandboxMode) -> str:
    """The PATH of a job with these variables and this virtual environment."""
    path = os.environ.get("PATH", SYSTEM_PATH) if mode is SandboxMode.NONE else SYSTEM_PATH
    return env.get("PATH", path if environment is None else f"{environment}/bin:{path}")


def run(job: SandboxJob, mode: SandboxMode) -> SandboxResult:
    """Run the job to its end, by itself or by a limit; nothing that it started is left.

    Raises SettingsError if this machine cannot, WorkspaceError if the sandbox could not be set up.
    """
    check_sandbox(mode)
    tree = tree_inside(job, mode)
    started = monotonic()
    with ExitStack() as stack:
        log = stack.enter_context(open_log(job.log))
        capture = Capture(log, log_bytes=job.limits.log_bytes, keep_bytes=job.limits.keep_bytes)
        env = _environment(job, mode)
        program = _find(job, env["PATH"])
        if program is None:
            capture.feed(
                f"There is no {job.command[0]!r} on the PATH of the job, which is {env['PATH']}.\n".encode()
            )
            end = _End(Stop.NOT_FOUND, None, None, Spent(0, is_whole=True), 0)
        else:
            group = job_group(job.limits.memory_bytes, job.limits.processes)
            if group is not None:
                stack.callback(group.kill)
            end = _run(job, mode, tree, program, env, group, capture)
    return SandboxResult(
        stop=end.stop,
        exit_code=end.exit_code,
        signal=end.signal,
        head=capture.head,
        tail=capture.tail,
        output_bytes=capture.size_bytes,
        log=job.log,
        log_digest=capture.digest,
        wall_ms=round((monotonic() - started) * 1000),
        cpu_ms=end.spent.cpu_ms,
        cpu_is_whole=end.spent.is_whole,
        cpu_reaped_ms=end.reaped_ms,
        tree=tree,
    )


@dataclass(frozen=True, slots=True)
class _End:
    stop: Stop
    exit_code: int | None
    signal: int | None
    spent: Spent
    reaped_ms: int


def _run(
    job: SandboxJob,
    mode: SandboxMode,
    tree: Path,
    program: str,
    env: dict[str, str],
    group: JobGroup | None,
    capture: Capture,
) -> _End:
    is_shut_in = mode is not SandboxMode.NONE
    with _pipe() as (status, status_to), _pipe() as (report, report_to):
        try:
            command = [program, *job.command[1:]]
            if is_shut_in:
                command = bubblewrap_command(job, tree_at=tree, status_fd=status_to)
            order = _order(job.limits, group, report_fd=report_to, is_shut_in=is_shut_in)
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_LAUNCHER), order, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=job.tree,
                start_new_session=True,
                pass_fds=(status_to, report_to),
            )
        finally:
            os.close(status_to)
            os.close(report_to)
        seen: list[Spent] = []
        stopped = _watch_and_kill(process, job.limits, capture, seen, mark=env[MARK], is_shut_in=is_shut_in)
        _, wait_status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(wait_status)
        if group is not None:
            group.kill_members()
        _drain(process, capture)
        said = status.read() if is_shut_in else None
        told = LauncherReport.read(report.read())
    if stopped is None and process.returncode != 0:
        # Without the launcher nobody knows how its job ended; the job died with it.
        told = None
    spent = spent_by(told, group.cpu_ms() if group is not None else None, seen)
    code = process.returncode if told is None else told.exit_code
    reaped_ms = round((usage.ru_utime + usage.ru_stime) * 1000)
    stop, exit_code, signal = _end(stopped, code, said, group, capture)
    return _End(stop, exit_code, signal, spent, reaped_ms)


@contextmanager
def _pipe() -> Iterator[tuple[BinaryIO, int]]:
    """Our end to read from, and the other, which the caller closes."""
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as reader:
        yield reader, theirs


def _watch_and_kill(
    process: subprocess.Popen[bytes],
    limits: SandboxLimits,
    capture: Capture,
    seen: list[Spent],
    *,
    mark: str,
    is_shut_in: bool,
) -> Stop | None:
    """Take output until the command ends or a limit is reached; then kill what is left. None: it ended by itself.

    What is killed is looked at before, into `seen`: of it nobody will tell what it took.
    """
    stopped: Stop | None = Stop.TIMED_OUT
    try:
        stopped = _watch(process, limits, capture)
        return stopped
    finally:
        if stopped is not None:
            seen.append(spent_until_now(process.pid))
        # The group's leader is not reaped yet, so its number cannot belong to anybody else.
        with suppress(ProcessLookupError):
            os.kill(process.pid, SIGKILL)
        kill_group(process.pid)
        # With the sandbox's first process its whole world ends; without one, daemons are looked for.
        if stopped is not None or not is_shut_in:
            kill_marked(mark)


def _watch(process: subprocess.Popen[bytes], limits: SandboxLimits, capture: Capture) -> Stop | None:
    deadline = monotonic() + limits.wall_s
    end_fd = os.pidfd_open(process.pid)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(end_fd, selectors.EVENT_READ)
            selector.register(_output_fd(process), selectors.EVENT_READ)
            while (left_s := deadline - monotonic()) > 0:
                for key, _ in selector.select(left_s):
                    if key.fd == end_fd:
                        return None
                    if piece := os.read(key.fd, _CHUNK_BYTES):
                        capture.feed(piece)
                    else:
                        selector.unregister(key.fd)
                if capture.size_bytes > limits.output_bytes:
                    return Stop.OUTPUT
            return Stop.TIMED_OUT
    finally:
        os.close(end_fd)


def _drain(process: subprocess.Popen[bytes], capture: Capture) -> None:
    """Take what is still in the pipe; all who could write to it are dead or dying."""
    deadline = monotonic() + _DRAIN_S
    output_fd = _output_fd(process)
    with selectors.DefaultSelector() as selector:
        selector.register(output_fd, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline - monotonic())):
            piece = os.read(output_fd, _CHUNK_BYTES)
            if not piece:
                break
            capture.feed(piece)
    if process.stdout is not None:
        process.stdout.close()


def _end(
    stopped: Stop | None, code: int, said: bytes | None, group: JobGroup | None, capture: Capture
) -> tuple[Stop, int | None, int | None]:
    if group is not None and group.oom_kills():
        return (Stop.MEMORY, None, int(SIGKILL))
    if stopped is not None:
        return (stopped, None, int(SIGKILL))
    if code > 0 and capture.head.startswith((CANNOT_RUN, "bwrap: execvp ")):
        return (Stop.NOT_FOUND, None, None)
    if said is not None and code > 0:
        exit_code = _exit_code(said)
        if exit_code is None:
            raise WorkspaceError(f"The sandbox could not be set up: {capture.head.strip()[-500:]}")
        # bwrap, like a shell, tells the death by a signal as 128 and its number.
        code = 128 - exit_code if 128 < exit_code <= 128 + 64 else exit_code
    if code < 0:
        return (Stop.CPU if -code == SIGXCPU else Stop.SIGNALED, None, -code)
    return (Stop.EXITED, code, None)


def _exit_code(said: bytes) -> int | None:
    """The command's exit code, from bwrap's own report; None if it never came to run one."""
    for line in said.splitlines():
        with suppress(ValueError):
            found = json.loads(line).get("exit-code")
            if isinstance(found, int):
                return found
    return None


def _order(limits: SandboxLimits, group: JobGroup | None, *, report_fd: int, is_shut_in: bool) -> str:
    """What the launcher takes on before it becomes the job."""
    cpu_s = ceil(limits.cpu_s or limits.wall_s * (os.cpu_count() or 1))
    wanted: dict[str, tuple[int, int]] = {
        # The second number is the kernel's last word, for those who ignore the first.
        "RLIMIT_CPU": (cpu_s, cpu_s + 5),
        "RLIMIT_FSIZE": (limits.file_bytes, limits.file_bytes),
        "RLIMIT_NOFILE": (limits.open_files, limits.open_files),
        "RLIMIT_CORE": (0, 0),
    }
    if group is None:
        # Written memory, not address space: many runtimes reserve far more of that than they use.
        wanted["RLIMIT_DATA"] = (limits.memory_bytes, limits.memory_bytes)
        if os.getuid() != 0:
            most = _own_threads() + limits.processes
            wanted["RLIMIT_NPROC"] = (most, most)
    joined = list(group.join_files) if group else []
    words = {"report": report_fd, "shut_in": is_shut_in, "parent": os.getpid()}
    return json.dumps({"cgroups": joined, "limits": wanted, **words})


def _own_threads() -> int:
    """How many threads this user has: the kernel counts all of them against the limit of each."""
    total = 0
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdecimal() and folder.stat().st_uid == os.getuid():
                total += sum(1 for _ in (folder / "task").iterdir())
    return total


def _environment(job: SandboxJob, mode: SandboxMode) -> dict[str, str]:
    """Built from nothing; the job's own variables have the last word."""
    home, temporary = HOME, "/tmp"
    if mode is SandboxMode.NONE:
        for folder in ("home", "tmp"):
            (job.log.parent / folder).mkdir(parents=True, exist_ok=True)
        home, temporary = str(job.log.parent / "home"), str(job.log.parent / "tmp")
    env = {
        "PATH": job_path({}, job.environment, mode),
        "HOME": home,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "USER": "rolecall",
        "LOGNAME": "rolecall",
        "SHELL": "/bin/sh",
        "TERM": "dumb",
    }
    if job.environment is not None:
        env["VIRTUAL_ENV"] = str(job.environment)
    return {**env, **job.env, MARK: f"{os.getpid()}-{next(_NUMBERS)}."}


def _find(job: SandboxJob, path: str) -> str | None:
    """The program of a job; a path is taken as it is, from the tree."""
    name = job.command[0]
    return name if "/" in name else shutil.which(name, path=path)


def _output_fd(process: subprocess.Popen[bytes]) -> int:
    if process.stdout is None:
        raise WorkspaceError("The job's output was not opened.")
    return process.stdout.fileno()

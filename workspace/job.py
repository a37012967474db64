"""A command for the sandbox, and what came of it: plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

MIB = 1024 * 1024


class SandboxMode(StrEnum):
    """How foreign code is shut in."""

    BUBBLEWRAP = "bubblewrap"
    """Read-only system, hidden home, no network, everything killed at the end."""
    NONE = "none"
    """An explicit setting of the operator: limits and killing only; the code sees what its user sees."""


class Stop(StrEnum):
    """Why a job ended."""

    EXITED = "exited"
    """By itself: the exit code says how."""
    SIGNALED = "signaled"
    """By a signal that we did not send."""
    TIMED_OUT = "timed_out"
    """Killed at the limit of wall time."""
    CPU = "cpu"
    """Killed by the kernel at the limit of CPU time."""
    MEMORY = "memory"
    """Killed by the kernel at the limit of memory."""
    OUTPUT = "output"
    """Killed because it did not stop writing."""
    NOT_FOUND = "not_found"
    """There is no such command in there: nothing ran."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What a job may use; `cpu_s=None` means the wall time times the number of processors."""

    wall_s: float = 600
    cpu_s: float | None = None
    memory_bytes: int = 4096 * MIB
    file_bytes: int = 1024 * MIB
    open_files: int = 4096
    processes: int = 1024
    output_bytes: int = 256 * MIB
    log_bytes: int = 32 * MIB
    keep_bytes: int = 16 * 1024
    """How much of each end of the output is kept in the result."""


@dataclass(frozen=True, slots=True)
class SandboxJob:
    """One command over a disposable tree.

    The tree is writable and stands at `checkout` if given (so that an editable install of that folder imports the
    tree), else at its own path. `environment` is a virtual environment's folder: readable, and first on PATH.
    `readable` and `writable` folders stand at their own paths. `log` is where the whole output goes.
    """

    command: Sequence[str]
    tree: Path
    log: Path
    checkout: Path | None = None
    environment: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    readable: Sequence[Path] = ()
    writable: Sequence[Path] = ()
    limits: SandboxLimits = field(default_factory=SandboxLimits)


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """How a job ended. `head` and `tail` are the ends of stdout and stderr together (`tail` is empty if `head` is
    all of it); `log_digest` is the SHA-256 of all of it, `output_bytes` its length, kept in the log or not.

    `tree` is where the command saw its tree. `cpu_ms` is of all processes of the job; where `cpu_is_whole` is false,
    some were killed uncounted and it is at least that. `cpu_reaped_ms` of it the kernel counts as our children's.
    """

    stop: Stop
    exit_code: int | None
    signal: int | None
    head: str
    tail: str
    output_bytes: int
    log: Path
    log_digest: str
    wall_ms: int
    cpu_ms: int
    cpu_is_whole: bool
    cpu_reaped_ms: int
    tree: Path

    @property
    def timed_out(self) -> bool:
        """True if it was killed at the limit of wall time."""
        return self.stop is Stop.TIMED_OUT

    @property
    def passed(self) -> bool:
        """True only if it ended by itself with exit code 0."""
        return self.stop is Stop.EXITED and self.exit_code == 0

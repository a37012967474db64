"""One process in the roll call: what it announced, what it runs, how it stands."""

from dataclasses import dataclass, field
from enum import StrEnum

from schemas.contracts import ContractDocument
from schemas.messages import Pulse, Running


class WorkerState(StrEnum):
    """How a process stands in the roll call."""

    READY = "ready"
    RESTING = "resting"
    DRAINING = "draining"
    SUSPECT = "suspect"
    LOST = "lost"
    GONE = "gone"

    @property
    def takes_work(self) -> bool:
        """True if new work may be meant for it."""
        return self is WorkerState.READY


@dataclass(frozen=True, slots=True)
class Worker:
    """One process. `seen` is on the lease clock; `heartbeat_at` and `rests_until` are wall-clock microseconds."""

    instance: str
    role: str
    pool: str
    host: str
    pid: int
    version: str
    slots: int
    digest: str
    state: WorkerState = WorkerState.READY
    seen: int = 0
    heartbeat_at: int = 0
    rests_until: int = 0
    running: tuple[Running, ...] = ()
    pulse: dict[str, Pulse] = field(default_factory=dict)
    rested_at: dict[str, int] = field(default_factory=dict)
    contracts: tuple[ContractDocument, ...] = ()
    engines: dict[str, str] = field(default_factory=dict)


# Stands for a process of which nothing is known yet.
NOBODY = Worker(instance="", role="", pool="", host="", pid=0, version="", slots=0, digest="")

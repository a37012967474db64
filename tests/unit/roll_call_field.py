"""A roll call and the time around it, for tests of the fleet."""

from dataclasses import dataclass, field
from typing import Any

from schemas.contracts import ContractRegistry
from schemas.messages import RoleAnnounced, RoleHeartbeat, Running, ServedContract
from supervisor.fleet import Fleet, Lost, Order
from supervisor.leases import Lease
from supervisor.workers import WorkerState

SECOND = 1_000_000
W1, W2 = "host-1-1", "host-2-1"


@dataclass
class Field:
    """A fleet and the time around it; probes come round every second unless the broker is away."""

    fleet: Fleet = field(default_factory=lambda: Fleet(ContractRegistry.builtin()))
    now: int = 1_000 * SECOND

    def __post_init__(self) -> None:
        self.pass_time(1)

    def pass_time(self, seconds: float, *, probes: bool = True) -> list[Lost]:
        """Let time pass, second by second; who was found lost."""
        lost: list[Lost] = []
        whole, rest = divmod(int(seconds * SECOND), SECOND)
        for step in [SECOND] * whole + [rest] * (rest > 0):
            self.now += step
            if probes:
                self.fleet.probe_returned(self.now, sent_at=self.now)
            if self.fleet.steady_since(self.now) is not None:
                lost += self.fleet.silent()
        return lost

    def announce(self, instance: str = W1, **changes: Any) -> str:
        return self.fleet.announced(instance, announced(**changes), self.now)

    def beat(
        self, instance: str = W1, *running: tuple[str, int], **changes: Any
    ) -> tuple[list[Lost], list[Order]]:
        """A heartbeat that arrives at once; `running` are (action, attempt)."""
        sent_at = changes.pop("sent_at", self.now)
        listed = tuple(Running(action_id=action_id, attempt=attempt) for action_id, attempt in running)
        said = {
            "role": "executor",
            "pool": "executor",
            "host": "host",
            "pid": 1,
            "slots": 2,
            "running": listed,
            "announcement": "digest",
        }
        return self.fleet.heartbeat(instance, RoleHeartbeat(**said | changes), sent_at=sent_at, now=self.now)

    def hold(self, instance: str = W1, action_id: str = "a-1", attempt: int = 1) -> Lease:
        lease = Lease("task", action_id, attempt, instance, accepted_at=self.now)
        self.fleet.leases.add(lease)
        return lease

    def state(self, instance: str = W1) -> WorkerState:
        return self.fleet.workers[instance].state


def announced(**changes: Any) -> RoleAnnounced:
    said = {
        "role": "executor",
        "pool": "executor",
        "host": "host",
        "pid": 1,
        "version": "1",
        "slots": 2,
        "digest": "digest",
    }
    return RoleAnnounced(**said | changes)


def served(document: Any) -> ServedContract:
    raw = document if isinstance(document, dict) else document.model_dump(mode="json")
    return ServedContract(name=raw["name"], version=raw["version"], digest="d", document=raw)


def reasons(lost: list[Lost]) -> list[tuple[str, str]]:
    return [(one.lease.action_id, one.reason) for one in lost]

"""Every message kind and the model of its body: the whole vocabulary of the bus.

Commands from clients and facts from workers go to the supervisor; work, leases and orders come from it.
"""

from typing import Any

from pydantic import BaseModel, Field

from schemas.base import Tolerant
from schemas.handoff import Handoff
from schemas.task import TaskProgress, TaskRequest

# ---- client → supervisor -------------------------------------------------------------------------------------


class TaskSubmitted(Tolerant):
    """A user asks for a refactor; the correlation_id of the envelope is the task's id.

    A request over 64 KiB lies as a blob in the hub and `request` is None.
    """

    request: TaskRequest | None = None
    request_blob: str | None = None


class TaskCancelRequested(Tolerant):
    """A user wants the task to end."""

    reason: str = "asked by the user"
    by: str = ""


class TaskDelivered(Tolerant):
    """A client created the branch in the user's repository."""

    branch: str
    commit: str
    repository: str
    by: str = ""


# ---- worker → supervisor -------------------------------------------------------------------------------------


class ServedContract(Tolerant):
    """A contract that a role serves: its document, and the digest of that document."""

    name: str
    version: int
    digest: str
    document: dict[str, Any]


class RoleAnnounced(Tolerant):
    """A process says what it is and what it can do. `digest` covers all of this but the instance."""

    role: str
    pool: str
    host: str
    pid: int
    version: str
    slots: int = Field(ge=0)
    contracts: tuple[ServedContract, ...] = ()
    engines: dict[str, str] = Field(default_factory=dict)
    digest: str


class RoleGoodbye(Tolerant):
    """A process leaves; what it still held is free at once."""

    pool: str
    reason: str
    running: tuple[str, ...] = ()


class Running(Tolerant):
    """An attempt that a worker is working on, as its heartbeat lists it."""

    action_id: str
    attempt: int
    task: str = ""
    contract: str = ""
    since: int = 0
    note: str = ""


class Pulse(Tolerant):
    """How one contract went on this instance since it started."""

    done: int = 0
    failed: int = 0
    wall_ms: int = 0


class RoleHeartbeat(Tolerant):
    """Who is here, and what runs. `announcement` is the digest of the announcement it belongs to."""

    role: str
    pool: str
    host: str
    pid: int
    slots: int
    state: str = "ready"
    sequence: int = 0
    running: tuple[Running, ...] = ()
    pulse: dict[str, Pulse] = Field(default_factory=dict)
    announcement: str = ""


class ActionAccepted(Tolerant):
    """A worker has taken the attempt and will work on it; from here on it is a holder."""

    action_id: str
    attempt: int
    nonce: str
    waited_ms: int = 0


class ActionHandoff(Tolerant):
    """The attempt is over."""

    handoff: Handoff


# ---- supervisor → worker -------------------------------------------------------------------------------------


class ActionRequested(Tolerant):
    """Work. `action` and `grant` are packed bytes; the rest repeats what a reader of the queue wants to see."""

    action_id: str
    contract: str
    step: str
    action: bytes
    grant: bytes
    signature: bytes


class LeaseGranted(Tolerant):
    """The one holder of an impure attempt may start."""

    action_id: str
    attempt: int
    nonce: str


class ActionStopped(Tolerant):
    """The receiver must stop this attempt, if it runs it."""

    action_id: str
    attempt: int
    reason: str


class RoleRested(Tolerant):
    """The receiver takes no new work for a while: it fails often what others do well."""

    seconds: float
    reason: str


class RoleDrained(Tolerant):
    """The receiver finishes what it runs and leaves."""

    reason: str


class AnnouncementWanted(Tolerant):
    """The receiver's announcement is not known here: announce again."""

    digest: str = ""


class ProbeSent(Tolerant):
    """The supervisor's own message to itself: the lease clock runs only while these come round."""

    token: str


class TaskProgressed(Tolerant):
    """A new picture of a task, for watchers."""

    progress: TaskProgress


BODIES: dict[str, type[BaseModel]] = {
    "task.submitted": TaskSubmitted,
    "task.cancel_requested": TaskCancelRequested,
    "task.delivered": TaskDelivered,
    "role.announced": RoleAnnounced,
    "role.goodbye": RoleGoodbye,
    "role.heartbeat": RoleHeartbeat,
    "action.accepted": ActionAccepted,
    "action.handoff": ActionHandoff,
    "action.requested": ActionRequested,
    "lease.granted": LeaseGranted,
    "action.stopped": ActionStopped,
    "role.rested": RoleRested,
    "role.drained": RoleDrained,
    "announcement.wanted": AnnouncementWanted,
    "probe.sent": ProbeSent,
    "task.progressed": TaskProgressed,
}

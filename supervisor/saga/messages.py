"""What `decide` is told: facts that the shell gathered, with the time they were received (microseconds UTC)."""

from dataclasses import dataclass, field

from schemas.handoff import Handoff
from schemas.plan import Plan
from schemas.task import TaskRequest
from supervisor.saga.state import ContractFacts, RuleRequest


@dataclass(frozen=True, slots=True)
class Submit:
    """A request, with its rules' contracts resolved; `refused` says why it cannot be worked on."""

    at: int
    request: TaskRequest | None
    rules: tuple[RuleRequest, ...] = ()
    plan_contract: ContractFacts | None = None
    review_contract: ContractFacts | None = None
    test_contract: ContractFacts | None = None
    secret: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """A user wants the task to end."""

    at: int
    reason: str


@dataclass(frozen=True, slots=True)
class Deliver:
    """A client has made the branch."""

    at: int
    branch: str
    commit: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Slots:
    """`count` actions of this pool could start soon."""

    at: int
    pool: str
    count: int


@dataclass(frozen=True, slots=True)
class Accept:
    """An instance accepted an attempt; `pool` is the instance's own, where it is known."""

    at: int
    action_id: str
    attempt: int
    nonce: str
    instance: str
    pool: str = ""


@dataclass(frozen=True, slots=True)
class CannotSend:
    """The message of a dispatched attempt cannot be made, now or ever (it is too large)."""

    at: int
    action_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class HandOff:
    """An attempt ended, as its worker tells it and as the commits show it.

    `refusals` are the reasons not to believe it (empty: believed); `not_granted` are (path, reason) where its only
    fault is an effect that nobody granted; `files`, `added` and `removed` are counted from
    the commits; `plan` is the parsed plan of a `plan.draft`.
    """

    at: int
    handoff: Handoff
    instance: str
    message_id: str
    refusals: tuple[str, ...] = ()
    not_granted: tuple[tuple[str, str], ...] = ()
    files: int = 0
    added: int = 0
    removed: int = 0
    plan: Plan | None = None


@dataclass(frozen=True, slots=True)
class LoseHolder:
    """An instance holds the attempt no longer: lost, left, or said so."""

    at: int
    action_id: str
    attempt: int
    instance: str
    reason: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed.

    `steady_since` is when the lease clock began to run without a break (the supervisor's own probe comes round), None
    while it stands. Nothing runs out that nobody could have reported.
    """

    at: int
    live_pools: frozenset[str] = field(default_factory=frozenset)
    steady_since: int | None = 0


@dataclass(frozen=True, slots=True)
class ComposeDone:
    """The candidate of a rule was composed, or could not be (`conflicts`: the paths)."""

    at: int
    rule: int
    generation: int
    base: str
    commit: str | None
    conflicts: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HeadDone:
    """The head was moved, or could not be (`moved=False`; without a `reason`, another commit stands there)."""

    at: int
    commit: str
    moved: bool
    reason: str = ""


Message = (
    Submit
    | Cancel
    | Deliver
    | Slots
    | Accept
    | CannotSend
    | HandOff
    | LoseHolder
    | Tick
    | ComposeDone
    | HeadDone
)

"""The state of one task: frozen data, kept per rule, step and live action.

Maps are persistent, so that one message costs the same in a plan of ten steps and of ten thousand. An action that
ended is gone from `actions`; what mattered of it is in its step, rule or candidate.

What changes with every message is a NamedTuple and not a frozen dataclass: a changed copy of thirty fields takes 3 µs
instead of 20, and one action makes about twenty of them.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from immutables import Map
from pydantic import Field

from schemas.base import Tolerant
from schemas.plan import Plan, PlannedRule
from schemas.scope import Reach, Scope
from schemas.task import TaskRequest
from schemas.words import Outcome, TaskStatus, Verdict
from supervisor.saga.fifo import Fifo
from supervisor.saga.moves import ActionStatus, Phase, RuleStatus, StepStatus

T = TypeVar("T")


def needed(value: T | None) -> T:
    """The value, where the saga's order guarantees that it is there. Raises ValueError otherwise: a defect."""
    if value is None:
        raise ValueError("asked for before the task had it")
    return value


class ActionKind(StrEnum):
    """What an action is for; decides what its end means."""

    PLAN = "plan"
    BASELINE = "baseline"
    CHANGE = "change"
    TWIN = "twin"
    REVIEW = "review"
    TEST = "test"
    CANARY_TEST = "canary_test"


class Proof(StrEnum):
    """How a step's result is proved: applied again by the reviewer, made twice, judged by the other gates alone
    (what is not pure cannot be repeated), or nothing to prove.
    """

    RERUN = "rerun"
    TWICE = "twice"
    GATES = "gates"
    NONE = "none"


class ContractFacts(Tolerant):
    """What the saga needs to know of a contract, fixed when the task is accepted."""

    ref: str
    title: str
    pool: str
    pure: bool
    changes_tree: bool
    file_shardable: bool
    time_limit_s: float
    longest_s: float
    proof: Proof
    injected: tuple[str, ...] = ()


class RuleRequest(Tolerant):
    """A rule of the recipe with its contract resolved and its input checked."""

    rule: str
    description: str = ""
    contract: ContractFacts
    input: dict[str, Any]
    scope: Scope | None = None


class ActionSpec(Tolerant):
    """Everything that says what an action is; the same over its attempts."""

    action_id: str
    kind: ActionKind
    step: str
    rule: int | None
    rule_id: str | None = None
    contract: str
    pool: str
    pure: bool = True
    changes_tree: bool = True
    input: dict[str, Any]
    base: str
    reach: Reach
    time_limit_s: float


class ActionState(NamedTuple):
    """A live action. `due` is when the present wait ends (dispatch or run limit), microseconds UTC.

    `holders` are (attempt, instance): the same attempt can reach two workers, and an old attempt may still run.
    `known_holders` are all there ever were: a handoff of one that was given up still counts. `handed_off` are those
    that ended the attempt themselves: its work message may come to them once more, and says nothing new.
    `failures` are (code, message) of the attempts that ended badly.
    """

    spec: ActionSpec
    status: ActionStatus = ActionStatus.READY
    attempt: int = 0
    nonce: str = ""
    due: int = 0
    ready_at: int = 0
    holders: frozenset[tuple[int, str]] = frozenset()
    known_holders: frozenset[tuple[int, str]] = frozenset()
    handed_off: frozenset[tuple[int, str]] = frozenset()
    failures: tuple[tuple[str, str], ...] = ()


class Refusal(Tolerant):
    """A path or step that will not land, and why."""

    step: str
    reason: str
    path: str | None = None


class StepState(NamedTuple):
    """One step. `results` holds what its runs returned (two where the proof is `twice`), by kind of action.

    `excluded` are paths that the review refused; the step was run again without them.
    """

    step: str
    rule: int
    shard: int
    base: str
    status: StepStatus = StepStatus.CHANGING
    canary: bool = False
    excluded: tuple[str, ...] = ()
    rounds: int = 0
    results: "Map[ActionKind, StepResult]" = Map()


class StepResult(Tolerant):
    """What one run of a step gave, as verified: ids, counts, who, and the message that tells the rest."""

    outcome: Outcome
    result: str | None = None
    files: int = 0
    added: int = 0
    removed: int = 0
    sites: int = 0
    residue: int = 0
    files_seen: int = 0
    wall_ms: int = 0
    instance: str = ""
    engines: dict[str, str] = Field(default_factory=dict)
    message_id: str = ""


class RuleState(NamedTuple):
    """One rule. `cursor` is the next shard to start; `open_steps` counts those started and not ended.

    `kept` maps shard to its result commit; counts are over kept steps.
    """

    request: RuleRequest
    planned: PlannedRule | None = None
    status: RuleStatus = RuleStatus.WAITING
    generation: int = 0
    base: str = ""
    cursor: int = 0
    open_steps: int = 0
    ended_steps: int = 0
    kept: "Map[int, str]" = Map()
    files: int = 0
    added: int = 0
    removed: int = 0
    sites: int = 0
    residue: int = 0
    engines: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    commit: str | None = None
    reason: str = ""
    canary_note: str = ""

    @property
    def shards(self) -> int:
        """How many steps the rule has."""
        return len(self.planned.shards) if self.planned else 0

    @property
    def is_final(self) -> bool:
        """True once the rule needs nothing more, unless an earlier rule falls."""
        return self.status in (RuleStatus.LANDED, RuleStatus.UNCHANGED, RuleStatus.UNLANDED)


class Candidate(NamedTuple):
    """A composed commit that waits for its tests; the chain of them grows on the head, in rule order."""

    rule: int
    commit: str
    base: str
    verdict: Verdict | None = None
    reason: str = ""


class Baseline(NamedTuple):
    """What the repository's own tests say before anything changed."""

    verdict: Verdict
    results: str | None = None
    passed: int = 0
    failed: int = 0
    duration_ms: int = 0
    reason: str = ""


class Canary(NamedTuple):
    """The throwaway chain: where it stands, which rule is on it, and how its tests went."""

    tip: str
    rule: int = -1
    step: str | None = None
    verdict: Verdict | None = None
    tested: bool = False


class Known(Tolerant):
    """What came back of a rule, for the planner."""

    rule: str
    outcome: str
    wall_ms: int = 0
    size_bytes: int = 0
    files_seen: int = 0
    sites: int = 0
    tests: Verdict | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a task will end once its head stands still."""

    status: TaskStatus
    reason: str


class TaskState(NamedTuple):
    """One task. `secret` keys the nonces; `spent_actions` counts opened actions against the limit.

    `ready` holds per pool the actions that wait for a slot; shards not yet started are not in it: the rule that
    runs has a cursor. `waiting` maps a pool nobody serves to the time since when.
    """

    task: str
    request: TaskRequest | None = None
    rules: tuple[RuleState, ...] = ()
    plan_contract: ContractFacts | None = None
    review_contract: ContractFacts | None = None
    test_contract: ContractFacts | None = None
    secret: str = ""
    status: TaskStatus = TaskStatus.SUBMITTED
    phase: Phase = Phase.PLANNING
    plan: Plan | None = None
    plan_asked: int = 0
    plan_failed: str = ""
    head: str = ""
    chain: tuple[Candidate, ...] = ()
    moving_to: str | None = None
    baseline: Baseline | None = None
    canary: Canary | None = None
    known: tuple[Known, ...] = ()
    steps: "Map[str, StepState]" = Map()
    actions: "Map[str, ActionState]" = Map()
    inflight: "Map[str, int]" = Map()
    ready: "Map[str, Fifo]" = Map()
    delayed: "Map[str, int]" = Map()
    remembered: "Map[str, StepResult]" = Map()
    waiting: "Map[str, int]" = Map()
    spent_actions: int = 0
    accepted_at: int = 0
    ended_at: int = 0
    ending: Ending | None = None
    reason: str = ""
    delivered: str | None = None

    @property
    def is_open(self) -> bool:
        """True while the task works and new work may begin."""
        return self.status is TaskStatus.WORKING and self.ending is None

    @property
    def asked(self) -> TaskRequest:
        """The request of an accepted task."""
        return needed(self.request)

    @property
    def tip(self) -> str:
        """The commit that the next rule works on: the last candidate, or the head."""
        return self.chain[-1].commit if self.chain else self.head

    @property
    def frontier(self) -> int | None:
        """The index of the rule whose turn it is, or None when every rule has had it."""
        for index, rule in enumerate(self.rules):
            if rule.status in (RuleStatus.WAITING, RuleStatus.RUNNING, RuleStatus.COMPOSING):
                return index
        return None

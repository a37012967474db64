"""What happened to a task: the recorded facts, from which `evolve` makes the state again at any time.

Events are written to the journal as JSON. A field that a later release adds has a default, so that old journals
keep replaying; an event's name and the meaning of its fields never change. `at` is microseconds UTC.
"""

from schemas.base import Tolerant
from schemas.lossless import dump_json, load_json
from schemas.plan import Plan
from schemas.task import TaskRequest
from schemas.words import Outcome, TaskStatus, Verdict
from supervisor.saga.moves import Phase, StepStatus
from supervisor.saga.state import (
    ActionKind,
    ActionSpec,
    ContractFacts,
    Known,
    Refusal,
    RuleRequest,
    StepResult,
)


class Event(Tolerant):
    """Something that happened to a task."""

    at: int


# ---- the task ------------------------------------------------------------------------------------------------


class TaskAccepted(Event):
    """The request is complete and all its contracts are served; work may begin."""

    request: TaskRequest
    rules: tuple[RuleRequest, ...]
    plan_contract: ContractFacts
    review_contract: ContractFacts
    test_contract: ContractFacts
    secret: str


class TaskRejected(Event):
    """The request cannot be worked on (`request` is None where not even that could be read)."""

    reason: str
    request: TaskRequest | None = None


class PhaseEntered(Event):
    """The task moved on."""

    phase: Phase


class TaskEnding(Event):
    """The task ends as soon as it is known whether the head, which is being moved, has moved."""

    status: TaskStatus
    reason: str


class TaskEnded(Event):
    """Nothing more will happen by itself."""

    status: TaskStatus
    reason: str


class BranchDelivered(Event):
    """A client made the branch in the user's repository."""

    branch: str
    commit: str
    by: str = ""


class PoolMissed(Event):
    """Work is ready and no live process serves its pool."""

    pool: str


class PoolServed(Event):
    """The pool that was missed has a process again."""

    pool: str


# ---- actions -------------------------------------------------------------------------------------------------


class ActionOpened(Event):
    """There is something to do; it waits for a slot."""

    spec: ActionSpec


class ActionReadied(Event):
    """An action's back-off is over."""

    action_id: str


class ActionDispatched(Event):
    """An attempt is on its way to the pool; unaccepted by `due`, it is dispatched again."""

    action_id: str
    attempt: int
    nonce: str
    due: int


class ActionHeld(Event):
    """An instance accepted the attempt and is a holder until it hands off or is lost; `due` ends its run."""

    action_id: str
    attempt: int
    instance: str
    due: int


class LeaseEnded(Event):
    """An instance holds the attempt no longer; `handed_off`: because it said so itself."""

    action_id: str
    attempt: int
    instance: str
    reason: str
    handed_off: bool = False


class AttemptFailed(Event):
    """The attempt did not do its work; the action is ready again at `retry_at`."""

    action_id: str
    attempt: int
    code: str
    message: str
    instance: str = ""
    retry_at: int


class ActionEnded(Event):
    """The action needs no further attempt."""

    action_id: str
    attempt: int
    outcome: Outcome
    instance: str = ""
    reason: str = ""
    message_id: str = ""


class HandoffSetAside(Event):
    """A handoff came that changes nothing, with the reason; `is_late` where another answer was there before it."""

    action_id: str
    attempt: int
    instance: str
    reason: str
    is_late: bool = False


# ---- plan, baseline, canary ----------------------------------------------------------------------------------


class PlanAsked(Event):
    """The planner is asked for this revision."""

    revision: int
    known: tuple[Known, ...] = ()


class PlanAdopted(Event):
    """The plan that counts from here on."""

    plan: Plan


class PlanFailed(Event):
    """The planner gave no (further) plan; an earlier one, if there is one, still holds."""

    reason: str


class BaselineKnown(Event):
    """The repository's tests ran on the base."""

    verdict: Verdict
    results: str | None = None
    passed: int = 0
    failed: int = 0
    duration_ms: int = 0
    reason: str = ""


class CanaryMoved(Event):
    """The throwaway chain turns to a rule (`rule`), standing at `tip`."""

    tip: str
    rule: int


class CanaryNoted(Event):
    """What the canary of a rule gave."""

    rule: int
    known: Known


class CanaryTested(Event):
    """The end of the throwaway chain was tested (or could not be)."""

    verdict: Verdict | None
    reason: str = ""


# ---- rules and steps -----------------------------------------------------------------------------------------


class RuleStarted(Event):
    """The rule fans out over its shards on this base."""

    rule: int
    base: str


class StepOpened(Event):
    """A step begins (or begins again without the `excluded` paths)."""

    step: str
    rule: int
    shard: int
    base: str
    canary: bool = False


class StepReturned(Event):
    """A run of the step came back, verified against the commits."""

    step: str
    kind: ActionKind
    result: StepResult


class StepNarrowed(Event):
    """The review refused some paths; the step runs again without them."""

    step: str
    refusals: tuple[Refusal, ...]


class StepEnded(Event):
    """The step is kept, unchanged, or named as not landed. `remembered` is the key under which it can be reused."""

    step: str
    status: StepStatus
    refusals: tuple[Refusal, ...] = ()
    remembered: str = ""
    from_memory: StepResult | None = None


class RuleGathered(Event):
    """All steps of the rule have ended; its candidate is being composed."""

    rule: int


class RuleComposed(Event):
    """The rule is one commit now, untested."""

    rule: int
    commit: str
    base: str


class RuleUnchanged(Event):
    """The rule found nothing to change."""

    rule: int
    reason: str


class RuleUnlanded(Event):
    """The rule will not land, and why."""

    rule: int
    reason: str


class RulesReset(Event):
    """These rules start again, because what they stood on fell."""

    first: int
    reason: str


class CandidateTested(Event):
    """A candidate's tests gave a verdict."""

    commit: str
    verdict: Verdict
    reason: str = ""
    passed: int = 0
    failed: int = 0
    message_id: str = ""


class HeadMoving(Event):
    """The head is being moved to this commit."""

    commit: str


class HeadMoved(Event):
    """The head stands at this commit, by compare-and-swap."""

    commit: str


class RuleLanded(Event):
    """The rule's commit is at or below the head. `tested` is None where another commit's test covers it."""

    rule: int
    commit: str
    tested: Verdict | None = None


EVENTS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        TaskAccepted, TaskRejected, PhaseEntered, TaskEnding, TaskEnded, BranchDelivered, PoolMissed, PoolServed,
        ActionOpened, ActionReadied, ActionDispatched, ActionHeld, LeaseEnded, AttemptFailed, ActionEnded,
        HandoffSetAside, PlanAsked, PlanAdopted, PlanFailed, BaselineKnown, CanaryMoved, CanaryNoted, CanaryTested,
        RuleStarted, StepOpened, StepReturned, StepNarrowed, StepEnded, RuleGathered, RuleComposed, RuleUnchanged,
        RuleUnlanded, RulesReset, CandidateTested, HeadMoving, HeadMoved, RuleLanded,
    )
}  # fmt: skip


def write_event(event: Event) -> tuple[str, bytes]:
    """An event as (name, JSON)."""
    return type(event).__name__, dump_json(event)


def read_event(name: str, data: bytes) -> Event:
    """The event back from its name and JSON. Raises KeyError for a name this release does not know."""
    return load_json(EVENTS[name], data)

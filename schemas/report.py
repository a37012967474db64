"""What is told of a task afterwards: the report for people who decide, the trace for people who look for a fault."""

from pydantic import Field

from schemas.base import Tolerant
from schemas.handoff import Cost, Evidence, FileChange, Residue, RiskNote
from schemas.words import TaskStatus, Verdict


class TestsTold(Tolerant):
    """How a test run went. `by` is who says so: the JUnit report of each test, or the exit code alone."""

    __test__ = False  # a model, not a test class

    verdict: Verdict
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    duration_ms: int = 0
    reason: str = ""
    by: str = ""
    new_failures: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    risks: tuple[RiskNote, ...] = ()


class Unlanded(Tolerant):
    """Work that did not land, and why; `path` where it is one file of a rule that landed otherwise."""

    rule: str
    reason: str
    step: str | None = None
    path: str | None = None


class RuleReport(Tolerant):
    """One rule: what it did, how that is proved, and the commit it became.

    `proof` is `rerun` (the reviewer applied the rule again and got the same tree), `twice` (two independent runs gave
    one commit) or `gates`; `proof_by` names the processes. `tested` is the verdict on this very commit, or None where
    the test of a later commit covers it.
    """

    rule: str
    contract: str
    description: str = ""
    status: str
    commit: str | None = None
    reason: str = ""
    steps: int = 0
    sites: int = 0
    files: int = 0
    added: int = 0
    removed: int = 0
    engines: tuple[str, ...] = ()
    proof: str = ""
    proof_by: str = ""
    gates: dict[str, Verdict] = Field(default_factory=dict)
    tested: TestsTold | None = None
    changed_files: tuple[FileChange, ...] = ()
    residue: tuple[Residue, ...] = ()
    residue_count: int = 0
    risks: tuple[RiskNote, ...] = ()
    evidence: tuple[Evidence, ...] = ()


class Report(Tolerant):
    """The whole story of a task. Times are microseconds UTC; `cost` is over every attempt, also the lost ones."""

    task: str
    status: TaskStatus
    reason: str
    recipe: str
    repository: str
    base: str
    base_ref: str
    head: str
    branch: str
    delivered: str | None = None
    submitted_by: str = ""
    follows: str | None = None
    accepted_at: int = 0
    ended_at: int | None = None
    rules: tuple[RuleReport, ...] = ()
    baseline: TestsTold | None = None
    test_command: tuple[str, ...] = ()
    test_environment: str | None = None
    untested: bool = False
    no_tests: bool = False
    unlanded: tuple[Unlanded, ...] = ()
    left_out: tuple[str, ...] = ()
    actions: int = 0
    attempts: int = 0
    retries: int = 0
    set_aside: int = 0
    workers: tuple[str, ...] = ()
    plan_revisions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cost: Cost = Field(default_factory=Cost)

    @property
    def landed(self) -> tuple[RuleReport, ...]:
        """The rules that are in the branch."""
        return tuple(rule for rule in self.rules if rule.status == "landed")


class TraceMessage(Tolerant):
    """One message of a request: who sent what to whom, when, and what became of it.

    `sent_at` is the sender's clock, `received_at` the supervisor's; one of them is None for a message that is still
    on its way. `direction` is `in` or `out`, seen from the supervisor.
    """

    message_id: str
    causation_id: str | None = None
    direction: str
    kind: str
    sender: str
    receiver: str
    sent_at: int | None = None
    received_at: int | None = None
    action_id: str | None = None
    attempt: int = 0
    note: str = ""


class TraceAttempt(Tolerant):
    """One attempt of an action: dispatched, accepted by whom, waited, ran, how it ended. Microseconds UTC."""

    attempt: int
    instance: str = ""
    dispatched_at: int | None = None
    accepted_at: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    outcome: str = ""
    reason: str = ""


class TraceAction(Tolerant):
    """One action and its attempts."""

    action_id: str
    kind: str
    step: str
    contract: str
    pool: str
    opened_at: int
    ended_at: int | None = None
    outcome: str = ""
    verdict: Verdict | None = None
    attempts: tuple[TraceAttempt, ...] = ()


class Moment(Tolerant):
    """Something that happened to the task itself: a phase, a landed rule, the end."""

    at: int
    what: str
    text: str


class Trace(Tolerant):
    """Everything that one correlation_id caused, over all processes."""

    task: str
    status: TaskStatus
    accepted_at: int
    ended_at: int | None = None
    actions: tuple[TraceAction, ...] = ()
    messages: tuple[TraceMessage, ...] = ()
    moments: tuple[Moment, ...] = ()


class TaskLine(Tolerant):
    """One task in a list."""

    task: str
    status: TaskStatus
    recipe: str
    repository: str
    submitted_by: str
    accepted_at: int
    ended_at: int | None = None
    reason: str = ""
    delivered: str | None = None


class WorkerLine(Tolerant):
    """One process in the roll call. `heartbeat_at` is microseconds UTC; `running` names steps and contracts."""

    instance: str
    role: str
    pool: str
    host: str
    pid: int
    version: str
    slots: int
    state: str
    heartbeat_at: int
    running: tuple[str, ...] = ()
    contracts: tuple[str, ...] = ()
    engines: dict[str, str] = Field(default_factory=dict)


class DeadLine(Tolerant):
    """One parked message."""

    id: str
    task: str
    kind: str
    reason: str
    queue: str
    received_at: int
    size_bytes: int

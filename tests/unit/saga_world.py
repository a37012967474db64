"""A world for the saga: workers, hub and clock as plain code, so that a whole task runs in milliseconds.

Each rule's effect is scripted by step; everything else answers as a healthy fleet would.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Any, TypeVar

from schemas.handoff import Failure, Finding, Handoff
from schemas.plan import Plan, PlannedRule
from schemas.scope import Shard
from schemas.task import TaskRequest, TestCommand
from schemas.words import Outcome, Shardable, Verdict
from supervisor.saga.commands import Command, Compose, Dispatch, GrantLease, MoveHead, StopAction
from supervisor.saga.decide import decide, pools_with_work
from supervisor.saga.events import Event, read_event, write_event
from supervisor.saga.evolve import evolve
from supervisor.saga.messages import (
    Accept,
    ComposeDone,
    HandOff,
    HeadDone,
    Message,
    Slots,
    Submit,
    Tick,
)
from supervisor.saga.moves import RuleStatus
from supervisor.saga.state import ActionKind, ContractFacts, Proof, RuleRequest, TaskState

C = TypeVar("C", bound=Command)
SECOND = 1_000_000
BASE = "b" * 40
EVERYONE = frozenset({"executor", "reviewer", "tester", "planner"})


def commit_id(*parts: str) -> str:
    return sha1(":".join(parts).encode()).hexdigest()


def facts(name: str, **changes: Any) -> ContractFacts:
    known: dict[str, Any] = {
        "ref": f"{name}@1",
        "title": name,
        "pool": "executor",
        "pure": True,
        "changes_tree": True,
        "file_shardable": True,
        "time_limit_s": 60,
        "longest_s": 600,
        "proof": Proof.RERUN,
    }
    return ContractFacts(**{**known, **changes})


def rule(name: str, **changes: Any) -> RuleRequest:
    return RuleRequest(rule=name, contract=facts("rewrite.pattern", **changes), input={"match": name})


PLANNER = facts("plan.draft", pool="planner", changes_tree=False, file_shardable=False)
REVIEWER = facts("review.change", pool="reviewer", changes_tree=False, file_shardable=False)
TESTER = facts("test.run", pool="tester", changes_tree=False, file_shardable=False)


def request(**changes: Any) -> TaskRequest:
    known: dict[str, Any] = {
        "recipe": {"recipe": "demo"},
        "recipe_name": "demo",
        "repository": "repo",
        "base": BASE,
        "base_ref": "main",
        "branch": "rolecall/demo",
        "test": TestCommand(command=("pytest",)),
    }
    return TaskRequest(**{**known, **changes})


def shards(count: int) -> tuple[Shard, ...]:
    cuts = ["", *(f"{number:04d}" for number in range(1, count))]
    return tuple(Shard(start=a, stop=b) for a, b in zip(cuts, [*cuts[1:], None], strict=True))


@dataclass
class World:
    """Runs one task. `plan`, `change`, `review` and `test` script what comes back; by default all is well."""

    rules: tuple[RuleRequest, ...]
    shard_count: int = 3
    request: TaskRequest = field(default_factory=request)
    canary: bool = True
    state: TaskState = field(default_factory=lambda: TaskState("task-1"))
    at: int = 1_000 * SECOND
    events: list[Event] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    outbox: deque[Command] = field(default_factory=deque)
    dispatched: list[Dispatch] = field(default_factory=list)
    plan: Callable[[Dispatch], Handoff | None] | None = None
    change: Callable[[Dispatch], Handoff | None] | None = None
    review: Callable[[Dispatch], Handoff | None] | None = None
    test: Callable[[Dispatch], Handoff | None] | None = None
    baseline: Verdict = Verdict.PASS
    baseline_ms: int = 1_000
    run_ahead: bool = True

    def submit(self) -> None:
        self.tell(
            Submit(
                self.at,
                self.request,
                self.rules,
                PLANNER,
                REVIEWER,
                TESTER,
                secret="s3cret",
            )
        )

    def tell(self, message: Message) -> tuple[Command, ...]:
        before = self.state
        decision = decide(before, message)
        replayed = before
        for event in decision.events:  # what is recorded makes the same state again, through JSON too
            replayed = evolve(replayed, read_event(*write_event(event)))
        assert replayed == decision.state
        self.state = decision.state
        self.events += decision.events
        self.commands += decision.commands
        self.outbox += decision.commands
        return decision.commands

    def run(self, turns: int = 500) -> None:
        """Let the fleet work until nothing moves any more."""
        for _ in range(turns):
            if not self.outbox:
                self.fill()
            if not self.outbox:
                return
            self.obey(self.outbox.popleft())
        raise AssertionError("the task does not come to rest")

    def until(self, kind: type[C]) -> C:
        """Run up to the next command of this kind, which is for the test to carry out."""
        if self.state.request is None:
            self.submit()
        while True:
            if not self.outbox:
                self.fill()
            command = self.outbox.popleft()
            if isinstance(command, kind):
                return command
            self.obey(command)

    @property
    def statuses(self) -> list[RuleStatus]:
        """How each rule stands."""
        return [one.status for one in self.state.rules]

    def fill(self, slots: int = 4) -> None:
        """Offer free slots wherever there is work."""
        for pool in sorted(pools_with_work(self.state)):
            self.tell(Slots(self.at, pool, slots))

    def obey(self, command: Command) -> None:
        """Carry out one command as a healthy fleet would."""
        self.at += 1000
        match command:
            case Dispatch():
                self.dispatched.append(command)
                self.accept(command)
                handoff = self.answer(command)
                if handoff is not None:
                    self.hand_off(handoff)
            case Compose():
                commit = commit_id("composed", command.base, *(result for _, result in command.results))
                done = ComposeDone(self.at, command.rule, command.generation, command.base, commit)
                self.tell(done)
            case MoveHead():
                self.tell(HeadDone(self.at, command.new, moved=True))
            case GrantLease() | StopAction():
                pass

    def accept(
        self, one: Dispatch, instance: str = "worker-1", *, nonce: str | None = None
    ) -> tuple[Command, ...]:
        """An instance accepts an attempt."""
        given = one.nonce if nonce is None else nonce
        return self.tell(Accept(self.at, one.spec.action_id, one.attempt, given, instance, one.spec.pool))

    def hand_off(
        self,
        handoff: Handoff,
        instance: str = "worker-1",
        refusals: tuple[str, ...] = (),
        not_granted: tuple[tuple[str, str], ...] = (),
    ) -> tuple[Command, ...]:
        plan = Plan.model_validate(handoff.output["plan"]) if "plan" in handoff.output else None
        files = 1 if handoff.result else 0
        message_id = f"m-{self.at}"
        told = HandOff(self.at, handoff, instance, message_id, refusals, not_granted, files=files, plan=plan)
        return self.tell(told)

    def answer(self, dispatch: Dispatch) -> Handoff | None:
        match dispatch.spec.kind:
            case ActionKind.PLAN:
                scripted = self.plan(dispatch) if self.plan else None
                return scripted or done(
                    dispatch, output={"plan": self.make_plan(dispatch).model_dump(mode="json")}
                )
            case ActionKind.BASELINE:
                counts = {"passed": 10, "failed": 0, "duration_ms": self.baseline_ms, "results": "blob"}
                return done(dispatch, verdict=self.baseline, output=counts)
            case ActionKind.CHANGE | ActionKind.TWIN:
                return self.change(dispatch) if self.change else changed(dispatch)
            case ActionKind.REVIEW:
                return self.review(dispatch) if self.review else done(dispatch, verdict=Verdict.PASS)
            case ActionKind.TEST | ActionKind.CANARY_TEST:
                return self.test(dispatch) if self.test else done(dispatch, verdict=Verdict.PASS)

    def make_plan(self, dispatch: Dispatch) -> Plan:
        return Plan(
            revision=dispatch.spec.input["revision"],
            reason="first" if dispatch.spec.input["revision"] == 1 else "after the canary",
            rules=tuple(
                PlannedRule(
                    rule=one.rule,
                    contract=one.contract.ref,
                    input=one.input,
                    shardable=Shardable.FILE if one.contract.file_shardable else Shardable.WHOLE,
                    shards=shards(self.shard_count if one.contract.file_shardable else 1),
                    canary=0
                    if self.canary and one.contract.file_shardable and self.shard_count > 1
                    else None,
                    run_ahead=self.run_ahead,
                )
                for one in self.rules
            ),
        )

    def names(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if type(event) is kind]

    def steps_of(self, kind: ActionKind) -> list[str]:
        return [one.spec.step for one in self.dispatched if one.spec.kind is kind]

    def tick(self, seconds: float, live: frozenset[str] = EVERYONE, steady_since: int | None = 0) -> None:
        """Let time pass."""
        self.at += int(seconds * SECOND)
        self.tell(Tick(self.at, live, steady_since))


def done(dispatch: Dispatch, **changes: Any) -> Handoff:
    return replace_handoff(
        Handoff(
            action_id=dispatch.spec.action_id,
            attempt=dispatch.attempt,
            nonce=dispatch.nonce,
            outcome=Outcome.DONE,
            base=dispatch.spec.base,
        ),
        **changes,
    )


def changed(dispatch: Dispatch) -> Handoff:
    result = commit_id(
        "change", dispatch.spec.step.split(".")[0], dispatch.spec.base, str(dispatch.spec.reach)
    )
    return done(dispatch, result=result, output={"sites": 2, "files_seen": 3}, engines={"ast-grep": "1"})


def unchanged(dispatch: Dispatch) -> Handoff:
    return done(dispatch, outcome=Outcome.NO_CHANGE, output={"sites": 0, "files_seen": 3})


def failed(dispatch: Dispatch, code: str = "crash", message: str = "it crashed") -> Handoff:
    return done(dispatch, outcome=Outcome.FAILED, error=Failure(code=code, message=message))


def refused(dispatch: Dispatch, path: str | None = None) -> Handoff:
    finding = Finding(gate="parses", text="does not parse any more", path=path)
    return done(dispatch, verdict=Verdict.FAIL, findings=(finding,))


def red(dispatch: Dispatch, text: str = "test_a fails") -> Handoff:
    return done(dispatch, verdict=Verdict.FAIL, findings=(Finding(gate="tests", text=text),))


def replace_handoff(handoff: Handoff, **changes: Any) -> Handoff:
    return handoff.model_copy(update=changes)

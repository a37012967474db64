"""The report of a task, from its recorded events and the handoffs that they cite."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bus.codec import body_of, decode
from schemas.errors import ContractError
from schemas.handoff import Cost, Handoff
from schemas.messages import ActionHandoff
from schemas.report import Report, RuleReport, TestsTold, Unlanded
from schemas.words import Verdict
from supervisor.journal.reader import JournalReader, Recorded
from supervisor.saga import events as ev
from supervisor.saga.evolve import evolve
from supervisor.saga.moves import RuleStatus, StepStatus
from supervisor.saga.state import ActionKind, RuleState, StepResult, TaskState

# What a report lists at length per rule; the counts tell how many there are.
LISTED_AT_MOST = 500


@dataclass(slots=True)
class _Kept:
    """The handoffs behind one kept step: of the change, its twin and the review."""

    change: StepResult
    twin: StepResult | None = None
    review: StepResult | None = None


@dataclass(slots=True)
class _Story:
    """What the events tell, gathered in one pass."""

    state: TaskState
    kept: dict[int, dict[int, _Kept]] = field(default_factory=dict)
    tested: dict[str, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    baseline_message: str | None = None
    attempts: int = 0
    retries: int = 0
    set_aside: int = 0
    workers: set[str] = field(default_factory=set)
    handoffs: list[str] = field(default_factory=list)


def report(reader: JournalReader, task: str, complete: Callable[[Handoff], Handoff] | None = None) -> Report:
    """The report of a task. `complete` reads spilled fields back from the hub, where it is at hand."""
    story = _tell(task, reader.events(task))
    if story.state.request is None:
        line = next((one for one in reader.tasks() if one.task == task), None)
        if line is None:
            raise ContractError(f"There is no task {task!r}.", suggestion="`rolecall list` shows them.")
    desk = _Handoffs(reader, complete)
    request = story.state.request
    state = story.state
    rules = tuple(_rule(index, rule, story, desk) for index, rule in enumerate(state.rules))
    baseline = desk.get(story.baseline_message)
    return Report(
        task=task,
        status=state.status,
        reason=state.reason,
        recipe=request.recipe_name if request else "",
        repository=request.repository if request else "",
        base=request.base if request else "",
        base_ref=request.base_ref if request else "",
        head=state.head,
        branch=request.branch if request else "",
        delivered=state.delivered,
        submitted_by=request.submitted_by if request else "",
        follows=request.follows if request else None,
        accepted_at=state.accepted_at,
        ended_at=state.ended_at or None,
        rules=rules,
        baseline=_baseline(state, baseline),
        test_command=request.test.command if request and request.test else (),
        test_environment=request.test.environment if request and request.test else None,
        untested=_is_untested(state),
        no_tests=request is not None and request.no_tests,
        unlanded=_unlanded(state),
        left_out=request.left_out if request else (),
        actions=state.spent_actions,
        attempts=story.attempts,
        retries=story.retries,
        set_aside=story.set_aside,
        workers=tuple(sorted(story.workers)),
        plan_revisions=tuple(story.reasons),
        notes=tuple(story.notes),
        cost=_cost(desk, story.handoffs),
    )


class _Handoffs:
    """Handoffs by message id, read once each."""

    def __init__(self, reader: JournalReader, complete: Callable[[Handoff], Handoff] | None) -> None:
        self._reader = reader
        self._complete = complete
        self._known: dict[str, Handoff | None] = {}

    def get(self, message_id: str | None, *, whole: bool = True) -> Handoff | None:
        """The handoff of a message, with its spilled fields if they can be had."""
        if not message_id:
            return None
        if message_id not in self._known:
            self._known[message_id] = self._read(message_id)
        found = self._known[message_id]
        if whole and found is not None and found.spilled and self._complete is not None:
            found = self._known[message_id] = self._complete(found)
        return found

    def _read(self, message_id: str) -> Handoff | None:
        raw = self._reader.letter(message_id)
        if raw is None:
            return None
        try:
            body = body_of(decode(raw))
        except ContractError:
            return None
        return body.handoff if isinstance(body, ActionHandoff) else None


def _tell(task: str, recorded: Iterable[Recorded]) -> _Story:
    story = _Story(TaskState(task))
    for one in recorded:
        _listen(story, one)
        story.state = evolve(story.state, one.event)
    return story


def _listen(story: _Story, recorded: Recorded) -> None:
    """Note what only the event tells; the state is still the one before it."""
    match recorded.event:
        case ev.PlanAdopted(plan=plan):
            story.reasons.append(f"{plan.revision}: {plan.reason}")
            story.notes += plan.notes
        case ev.BaselineKnown():
            story.baseline_message = recorded.message_id
        case ev.ActionDispatched(attempt=attempt):
            story.attempts += 1
            story.retries += attempt > 1
        case ev.ActionHeld(instance=instance):
            story.workers.add(instance)
        case ev.HandoffSetAside():
            story.set_aside += 1
        case ev.ActionEnded(message_id=message_id) if message_id:
            story.handoffs.append(message_id)
        case ev.AttemptFailed() if recorded.message_id:
            story.handoffs.append(recorded.message_id)
        case ev.StepEnded(step=name, status=StepStatus.KEPT):
            _note_step(story, name, recorded.event)
        case ev.RuleStarted(rule=rule):
            story.kept[rule] = {}
        case ev.RulesReset(first=first):
            story.kept = {rule: kept for rule, kept in story.kept.items() if rule < first}
        case ev.CandidateTested(commit=commit, message_id=message_id):
            story.tested[commit] = message_id
        case _:
            pass


def _note_step(story: _Story, name: str, event: ev.StepEnded) -> None:
    step = story.state.steps[name]
    change = event.from_memory or step.results.get(ActionKind.CHANGE)
    if change is None:
        return
    # A canary's review is cited where its remembered result is kept, so it is noted under its own key.
    kept = _Kept(change, step.results.get(ActionKind.TWIN), step.results.get(ActionKind.REVIEW))
    if step.canary:
        story.kept.setdefault(-1 - step.rule, {})[step.shard] = kept
        return
    if event.from_memory is not None:
        remembered = story.kept.get(-1 - step.rule, {}).get(step.shard)
        kept = remembered or kept
    story.kept.setdefault(step.rule, {})[step.shard] = kept


def _rule(index: int, rule: RuleState, story: _Story, desk: _Handoffs) -> RuleReport:
    kept = [one for _, one in sorted(story.kept.get(index, {}).items())]
    changes = [found for one in kept if (found := desk.get(one.change.message_id))]
    reviews = [found for one in kept if one.review and (found := desk.get(one.review.message_id))]
    reviewers = {one.review.instance for one in kept if one.review}
    residue = [place for change in changes for place in change.residue]
    proof = str(rule.request.contract.proof)
    return RuleReport(
        rule=rule.request.rule,
        contract=rule.request.contract.ref,
        description=rule.request.description or rule.request.contract.title,
        status=str(rule.status),
        commit=rule.commit,
        reason=rule.reason,
        steps=rule.shards,
        sites=rule.sites,
        files=rule.files,
        added=rule.added,
        removed=rule.removed,
        engines=rule.engines,
        proof=proof if kept else "",
        proof_by=_proof_by(kept, proof, reviewers),
        gates=_gates(reviews),
        tested=_told(desk.get(story.tested.get(rule.commit or ""))),
        changed_files=tuple(one for change in changes for one in change.files)[:LISTED_AT_MOST],
        residue=tuple(residue[:LISTED_AT_MOST]),
        residue_count=rule.residue,
        risks=tuple(dict.fromkeys(risk for one in (*changes, *reviews) for risk in one.risks)),
        evidence=tuple(one for found in reviews[:1] for one in found.evidence),
    )


def _proof_by(kept: list[_Kept], proof: str, reviewers: set[str]) -> str:
    if not kept:
        return ""
    if proof != "twice":
        return f"{len(kept)} review{'s' * (len(kept) != 1)} by {', '.join(sorted(reviewers))}"
    apart = sum(1 for one in kept if one.twin and one.twin.instance != one.change.instance)
    if apart == len(kept):
        return "two runs on different instances gave the same commits"
    if apart == 0:
        return "two runs on one instance gave the same commits"
    return f"two runs gave the same commits, {apart} of {len(kept)} steps on different instances"


def _gates(reviews: list[Handoff]) -> dict[str, Verdict]:
    """Every gate that was asked, `pass` only if it passed in every step."""
    gates: dict[str, Verdict] = {}
    for review in reviews:
        for gate, verdict in review.output.get("gates", {}).items():
            if gates.get(gate, Verdict.PASS) is Verdict.PASS:
                gates[gate] = Verdict(verdict)
    return gates


def _told(handoff: Handoff | None) -> TestsTold | None:
    if handoff is None or handoff.verdict is None:
        return None
    output = handoff.output
    return TestsTold(
        verdict=handoff.verdict,
        passed=output.get("passed", 0),
        failed=output.get("failed", 0),
        skipped=output.get("skipped", 0),
        duration_ms=output.get("duration_ms", 0),
        reason=handoff.findings[0].text if handoff.findings else "",
        by=str(output.get("by", "")),
        new_failures=tuple(output.get("new_failures", ())),
        flaky=tuple(output.get("flaky", ())),
        risks=handoff.risks,
    )


def _baseline(state: TaskState, handoff: Handoff | None) -> TestsTold | None:
    known = state.baseline
    if known is None:
        return None
    told = _told(handoff)
    if told is not None:
        return told
    return TestsTold(
        verdict=known.verdict,
        passed=known.passed,
        failed=known.failed,
        duration_ms=known.duration_ms,
        reason=known.reason,
    )


def _is_untested(state: TaskState) -> bool:
    landed = any(rule.status is RuleStatus.LANDED for rule in state.rules)
    return landed and (state.baseline is None or state.baseline.verdict is not Verdict.PASS)


def _unlanded(state: TaskState) -> tuple[Unlanded, ...]:
    found: list[Unlanded] = []
    for rule in state.rules:
        name = rule.request.rule
        if rule.status is RuleStatus.UNLANDED:
            found.append(Unlanded(rule=name, reason=rule.reason))
        if rule.status is RuleStatus.LANDED:
            found += [
                Unlanded(rule=name, step=one.step, path=one.path, reason=one.reason) for one in rule.refusals
            ]
    return tuple(found)


def _cost(desk: _Handoffs, message_ids: Iterable[str]) -> Cost:
    costs = [found.cost for one in message_ids if (found := desk.get(one, whole=False))]
    return Cost(
        wall_ms=sum(cost.wall_ms for cost in costs),
        cpu_ms=sum(cost.cpu_ms for cost in costs),
        cpu_is_whole=all(cost.cpu_is_whole for cost in costs),
        tokens_in=sum(cost.tokens_in for cost in costs),
        tokens_out=sum(cost.tokens_out for cost in costs),
        money=sum(cost.money for cost in costs),
    )

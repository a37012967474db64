"""Sentences about events: the same words in the log and in a trace."""

from dataclasses import dataclass

from schemas.words import TaskStatus, Verdict
from supervisor.saga import events as ev
from supervisor.saga.state import TaskState


@dataclass(frozen=True, slots=True)
class Told:
    """One event in words: `action` stays the same for ever; `warns` marks what someone may want to look at."""

    action: str
    text: str
    warns: bool = False


def tell(state: TaskState, event: ev.Event) -> Told | None:
    """What to say of an event (`state` is the one after it); None for the everyday ones."""
    match event:
        case ev.TaskAccepted():
            rules = len(event.rules)
            recipe, repository = event.request.recipe_name, event.request.repository
            return Told("task_accepted", f"{recipe} on {repository}: {rules} rule{'s' * (rules != 1)}.")
        case ev.TaskRejected():
            return Told("task_rejected", f"The request was refused: {event.reason}", warns=True)
        case ev.TaskEnding():
            return Told("task_ending", f"Ending once the head stands still: {event.reason}.")
        case ev.TaskEnded():
            bad = event.status in (TaskStatus.FAILED, TaskStatus.REJECTED)
            return Told("task_ended", f"{str(event.status).capitalize()}: {event.reason}.", warns=bad)
        case ev.BranchDelivered():
            return Told("branch_delivered", f"Delivered as {event.branch}.")
        case ev.PoolMissed():
            return Told("pool_missed", f"Waiting for a process that serves {event.pool}.", warns=True)
        case ev.PoolServed():
            return Told("pool_served", f"{event.pool} is served again.")
        case ev.PlanAdopted():
            shards = sum(len(rule.shards) for rule in event.plan.rules)
            return Told("plan_adopted", f"Plan {event.plan.revision}, {shards} shards: {event.plan.reason}.")
        case ev.PlanFailed():
            return Told("plan_failed", f"No plan came back: {event.reason}.", warns=True)
        case ev.BaselineKnown():
            return _baseline(event)
        case ev.CanaryTested():
            verdict = event.verdict or event.reason or "not tested"
            return Told(
                "canary_tested", f"The canary's tests: {verdict}.", warns=event.verdict is Verdict.FAIL
            )
        case _:
            return _about_rules(state, event) or _about_actions(event)


def _baseline(event: ev.BaselineKnown) -> Told:
    if event.verdict is not Verdict.PASS:
        return Told("baseline_known", f"Baseline {event.verdict}: {event.reason}.", warns=True)
    red = f", {event.failed} failed before any change" if event.failed else ""
    return Told(
        "baseline_known", f"Baseline: {event.passed} tests pass{red} ({event.duration_ms / 1000:.1f} s)."
    )


def _about_rules(state: TaskState, event: ev.Event) -> Told | None:
    match event:
        case ev.RuleStarted():
            rule = state.rules[event.rule]
            return Told(
                "rule_started", f"{rule.request.rule} starts on {event.base[:12]}, {rule.shards} steps."
            )
        case ev.RuleComposed():
            rule = state.rules[event.rule]
            return Told(
                "rule_composed",
                f"{rule.request.rule} is one commit now, {rule.files} files: {event.commit[:12]}.",
            )
        case ev.RuleUnchanged():
            return Told("rule_unchanged", f"{state.rules[event.rule].request.rule}: {event.reason}.")
        case ev.RuleUnlanded():
            name = state.rules[event.rule].request.rule
            return Told("rule_unlanded", f"{name} does not land: {event.reason}.", warns=True)
        case ev.RulesReset():
            name = state.rules[event.first].request.rule
            return Told("rules_reset", f"Starting again from {name}: {event.reason}.", warns=True)
        case ev.RuleLanded():
            name = state.rules[event.rule].request.rule
            how = "tested" if event.tested is Verdict.PASS else "covered by a later test"
            if state.baseline is not None and state.baseline.verdict is not Verdict.PASS:
                how = "untested"
            return Told("rule_landed", f"{name} landed as {event.commit[:12]}, {how}.")
        case ev.StepNarrowed():
            paths = ", ".join(one.path or "" for one in event.refusals[:3])
            return Told("step_narrowed", f"{event.step} runs again without {paths}.", warns=True)
        case ev.CandidateTested():
            counts = f"{event.passed} passed, {event.failed} failed"
            bad = event.verdict is not Verdict.PASS
            return Told(
                "candidate_tested", f"Tests of {event.commit[:12]}: {event.verdict} ({counts}).", warns=bad
            )
        case _:
            return None


def _about_actions(event: ev.Event) -> Told | None:
    match event:
        case ev.AttemptFailed():
            where = f" on {event.instance}" if event.instance else ""
            text = (
                f"Attempt {event.attempt} of {event.action_id} failed{where}: {event.code}: {event.message}."
            )
            return Told("attempt_failed", text, warns=True)
        case ev.HandoffSetAside():
            text = f"A handoff of {event.action_id} was set aside: {event.reason}."
            return Told("handoff_set_aside", text, warns=not event.is_late)
        case _:
            return None

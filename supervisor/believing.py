"""What the supervisor believes of a handoff: nothing that the commits and the evidence do not show.

Pure: the facts from the commits are gathered by `hub_work`, the judgement is here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from schemas.handoff import Finding, Handoff
from schemas.plan import Plan
from schemas.scope import Shard, path_key
from schemas.words import Outcome, Severity, Verdict
from supervisor.saga.state import ActionKind, ActionSpec, Proof, TaskState

# What a review of a result has to answer for, besides the step's proof; one that leaves a gate out is no review.
RESULT_GATES = frozenset(
    {"commit", "scope", "modes", "links", "encodings", "line_ends", "conflict_markers", "parses", "ruff"}
)


# Outcomes that claim the work is done; the others only say why it is not.
FINISHED = frozenset({Outcome.DONE, Outcome.NO_CHANGE})


# The gate of `workspace.commit_check` that asks for grants.
EFFECTS_GATE = "effects"


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """What the commits themselves say about a result: findings against it, and counts."""

    findings: tuple[Finding, ...] = ()
    paths: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0


def refusals(spec: ActionSpec, handoff: Handoff, facts: CommitFacts) -> tuple[str, ...]:
    """The reasons not to believe a handoff that says it is done; none if it is believed."""
    if handoff.outcome not in FINISHED:
        return ()
    if handoff.base != spec.base:
        return (f"it worked on {handoff.base[:12]} instead of {spec.base[:12]}",)
    match spec.kind:
        case ActionKind.CHANGE | ActionKind.TWIN if not spec.changes_tree:
            return ("its contract changes nothing, and it names a result",) if handoff.result else ()
        case ActionKind.CHANGE | ActionKind.TWIN:
            return _change(handoff, facts)
        case ActionKind.REVIEW:
            return _review(spec, handoff)
        case ActionKind.BASELINE | ActionKind.TEST | ActionKind.CANARY_TEST:
            return _test(handoff)
        case ActionKind.PLAN:
            return () if "plan" in handoff.output else ("it gives no plan",)


def not_granted(facts: CommitFacts) -> tuple[tuple[str, str], ...]:
    """(path, reason) of every effect that was not granted, where there is no other fault; else nothing."""
    errors = [finding for finding in facts.findings if finding.severity is Severity.ERROR]
    if any(one.gate != EFFECTS_GATE or one.path is None for one in errors):
        return ()
    return tuple((one.path, one.text) for one in errors if one.path is not None)


def plan_faults(state: TaskState, plan: Plan, revision: int) -> tuple[str, ...]:
    """What is wrong with a plan: it must hold exactly the task's rules, and shards that leave no path out."""
    if plan.revision != revision:
        return (f"the plan is revision {plan.revision}, asked was {revision}",)
    wanted = [(rule.request.rule, rule.request.contract.ref) for rule in state.rules]
    if [(rule.rule, rule.contract) for rule in plan.rules] != wanted:
        return ("the plan does not hold the recipe's rules in their order",)
    for planned, rule in zip(plan.rules, state.rules, strict=True):
        if planned.input != rule.request.input:
            return (f"the plan changes the input of {planned.rule}",)
        if not rule.request.contract.file_shardable and len(planned.shards) > 1:
            return (f"the plan cuts {planned.rule}, which cannot be cut",)
        if not _covers(planned.shards):
            return (f"the shards of {planned.rule} overlap or leave paths out",)
        if planned.canary is not None and not 0 <= planned.canary < len(planned.shards):
            return (f"the canary of {planned.rule} is not one of its shards",)
    return ()


def _covers(shards: Sequence[Shard]) -> bool:
    joined = all(one.stop == after.start for one, after in pairwise(shards))
    rising = all(path_key(one.start) < path_key(one.stop) for one in shards if one.stop is not None)
    return joined and rising and shards[0].start == "" and shards[-1].stop is None


def _change(handoff: Handoff, facts: CommitFacts) -> tuple[str, ...]:
    if handoff.outcome is Outcome.NO_CHANGE:
        return ("it says no_change and names a result",) if handoff.result else ()
    if handoff.result is None:
        return ("it says done and names no result",)
    errors = [finding for finding in facts.findings if finding.severity is Severity.ERROR]
    if errors:
        return tuple(f"{one.path}: {one.text}" if one.path else one.text for one in errors)
    if not facts.paths:
        return ("its result changes nothing",)
    said = handoff.spilled["files"].count if "files" in handoff.spilled else len(handoff.files)
    if said != len(facts.paths):
        return (f"it reports {said} changed files, the commits show {len(facts.paths)}",)
    return () if _has_evidence(handoff) else ("it gives no evidence",)


def _review(spec: ActionSpec, handoff: Handoff) -> tuple[str, ...]:
    if handoff.verdict is None:
        return ("it gives no verdict",)
    gates = handoff.output.get("gates", {})
    wanted = set(RESULT_GATES) if spec.input["result"] else set()
    if spec.input["proof"] != Proof.GATES:
        wanted.add(spec.input["proof"])
    missing = sorted(wanted - set(gates))
    if missing:
        return (f"it does not answer for the gates {', '.join(missing)}",)
    if handoff.verdict is Verdict.PASS and any(verdict != Verdict.PASS for verdict in gates.values()):
        return ("it passes although a gate does not",)
    return () if _has_evidence(handoff) else ("it gives no evidence",)


def _test(handoff: Handoff) -> tuple[str, ...]:
    if handoff.verdict is None:
        return ("it gives no verdict",)
    if handoff.verdict is Verdict.PASS and not any(
        one.command and one.exit_code is not None and one.log_digest for one in handoff.evidence
    ):
        return ("it passes without a command, an exit code and a log as evidence",)
    return ()


def _has_evidence(handoff: Handoff) -> bool:
    return bool(handoff.evidence) or "evidence" in handoff.spilled

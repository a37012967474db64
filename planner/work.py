"""`plan.draft`: rules and a snapshot in, a plan out. The same input gives the same plan.

A revision is the first plan again with what is known put in: sizes from what a canary took, smaller shards for a rule
that ran out of time, and nothing running ahead of a rule whose canary's tests failed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engines.api import Engine
from engines.registry import engine_for
from planner.cutting import Cut, Sized, canary_of, cut, measured_rate, rate_of
from schemas.action import Action
from schemas.errors import ContractError, RolecallError
from schemas.handoff import Evidence, Handoff
from schemas.plan import Plan, PlannedRule
from schemas.scope import Reach, Scope, Shard
from schemas.words import Outcome, Shardable, Verdict
from workspace.answers import Stopwatch
from workspace.view import HubView, TreeView
from workspace.work import WorkContext

# Looking for sites reads files; beyond this much a plan would take longer than a shard.
SEARCHED_BYTES = 64_000_000
# A rule that ran out of time gets shards of a quarter of the size, each time.
SMALLER = 4


@dataclass(frozen=True, slots=True)
class _Found:
    """What a cheap search for a rule's literals says: files that may have sites, and the first of them."""

    sites: int
    first: str | None


def handle(action: Action, context: WorkContext) -> Handoff:
    """Draft or revise the plan of a task."""
    watch = Stopwatch.started()
    try:
        context.hub.ensure(action.base)
        context.note("planning")
        plan = draft(action, context)
    except ContractError as error:
        return watch.failed(action, error, outcome=Outcome.FAILED)
    except RolecallError as error:
        return watch.failed(action, error, outcome=Outcome.COULD_NOT_RUN)
    shards = sum(len(rule.shards) for rule in plan.rules)
    return watch.answer(
        action,
        outcome=Outcome.DONE,
        output={"plan": plan.model_dump(mode="json")},
        evidence=(
            Evidence(
                claim=f"{len(plan.rules)} rules were cut into {shards} shards",
                verdict=Verdict.PASS,
                counts={rule.rule: rule.files for rule in plan.rules},
            ),
        ),
    )


def draft(action: Action, context: WorkContext) -> Plan:
    """The plan for this input."""
    revision = action.input["revision"]
    known: Sequence[Mapping[str, Any]] = action.input.get("known", ())
    rules: list[PlannedRule] = []
    notes: list[str] = []
    for rule in action.input["rules"]:
        own = (Scope.model_validate(rule["scope"]),) if rule.get("scope") else ()
        reach = Reach(scopes=(*action.reach.scopes, *own))
        view = HubView(context.hub, action.base, reach)
        told = [one for one in known if one["rule"] == rule["rule"]]
        planned, noted = plan_rule(rule, view, told)
        rules.append(planned)
        notes += noted
    return Plan(revision=revision, reason=_reason(known), rules=tuple(rules), notes=tuple(notes))


def plan_rule(
    rule: Mapping[str, Any], view: TreeView, told: Sequence[Mapping[str, Any]]
) -> tuple[PlannedRule, list[str]]:
    """One rule, cut by what is expected of it and by what is known (`told`), with sentences for the report."""
    engine = engine_for(rule["contract"])
    files = _files(engine, rule["input"], view)
    notes: list[str] = []
    found = _search(engine, rule["input"], files, view)
    made = Cut((Shard(),))
    if rule["shardable"] == Shardable.FILE:
        expected = rate_of(rule["contract"])
        canary = canary_of(files, found.first, expected) if found.first is not None else None
        made = cut(files, _rate(rule["rule"], expected, canary, files, told, notes), canary=canary)
    red = any(one.get("tests") == Verdict.FAIL for one in told)
    if red:
        notes.append(f"{rule['rule']}: the canary's tests failed, so nothing runs ahead of it.")
    planned = PlannedRule(
        rule=rule["rule"],
        contract=rule["contract"],
        input=rule["input"],
        scope=Scope.model_validate(rule["scope"]) if rule.get("scope") else Scope(),
        shardable=Shardable(rule["shardable"]),
        shards=made.shards,
        canary=made.canary,
        run_ahead=not red,
        files=len(files),
        size_bytes=sum(file.size_bytes for file in files),
        sites=found.sites,
    )
    return planned, notes


def _files(engine: Engine | None, given: Mapping[str, Any], view: TreeView) -> list[Sized]:
    sized: list[Sized] = []
    for path in view.paths():
        entry = view.entry(path)
        if entry is not None and (engine is None or engine.wants(given, path)):
            sized.append(Sized(path, entry.size or 0))
    return sized


def _search(
    engine: Engine | None, given: Mapping[str, Any], files: Sequence[Sized], view: TreeView
) -> _Found:
    """Files that hold all the rule's literals; where none are known, every file may have a site."""
    literals = engine.literals(given) if engine is not None else None
    if not files:
        return _Found(0, None)
    if literals is None:
        return _Found(0, files[0].path)
    budget = SEARCHED_BYTES
    wanted: list[str] = []
    for file in files:
        budget -= file.size_bytes
        if budget < 0:
            break
        wanted.append(file.path)
    hits = [path for path, data in view.read_many(wanted) if all(one in data for one in literals)]
    return _Found(len(hits), hits[0] if hits else files[0].path if len(wanted) < len(files) else None)


def _rate(
    rule: str,
    expected: float,
    canary: Shard | None,
    files: Sequence[Sized],
    told: Sequence[Mapping[str, Any]],
    notes: list[str],
) -> float:
    """Bytes a second for the shards: the expectation, what the canary took, and smaller where time ran out."""
    rate = expected
    tried = next((one for one in told if one.get("wall_ms") and one["outcome"] != "time_limit"), None)
    if tried is not None and canary is not None:
        size = sum(file.size_bytes for file in files if canary.holds(file.path))
        rate = measured_rate(expected, size, tried["wall_ms"])
        notes.append(f"{rule}: the canary took {tried['wall_ms']} ms for {size:,} bytes.")
    smaller = float(SMALLER ** sum(1 for one in told if one["outcome"] == "time_limit"))
    if smaller > 1:
        notes.append(f"{rule}: a shard ran out of time, so the shards are cut {smaller:g} times smaller.")
    return rate / smaller


def _reason(known: Sequence[Mapping[str, Any]]) -> str:
    if not known:
        return "first plan"
    if any(one["outcome"] == "time_limit" for one in known):
        return "a shard ran out of time"
    if any(one.get("tests") == Verdict.FAIL for one in known):
        return "the canary's tests failed"
    return "sizes from what the canary took"

"""Simulated workers: they take, run, answer, stop, die and come back as the runtime of `bus/` does."""

from dataclasses import dataclass, field

from schemas.handoff import Handoff
from schemas.plan import Plan, PlannedRule
from schemas.words import Shardable, Verdict
from supervisor.saga.commands import Dispatch
from supervisor.saga.state import ActionKind
from tests.simulation.script import Repository, RuleScript, Script
from tests.unit.saga_world import done, failed, red, refused, shards, unchanged

POOLS = ("planner", "executor", "reviewer", "tester")
Key = tuple[str, int, str]


def key_of(dispatch: Dispatch) -> Key:
    """What makes two deliveries the same attempt."""
    return dispatch.spec.action_id, dispatch.attempt, dispatch.nonce


def name_of(dispatch: Dispatch) -> str:
    """An attempt in a few letters, for the story."""
    kind = "" if dispatch.spec.kind is ActionKind.CHANGE else f" ({dispatch.spec.kind})"
    return f"{dispatch.spec.step}#{dispatch.attempt}{kind}"


@dataclass
class Worker:
    """One process. `running` waits to be finished; `waiting` are impure attempts without their lease."""

    instance: str
    pool: str
    slots: int
    alive: bool = True
    running: dict[Key, Dispatch] = field(default_factory=dict)
    waiting: dict[Key, Dispatch] = field(default_factory=dict)
    ended: dict[Key, Handoff] = field(default_factory=dict)

    @property
    def busy(self) -> int:
        return len(self.running) + len(self.waiting)

    @property
    def has_room(self) -> bool:
        return self.alive and self.busy < self.slots

    def holds(self, action_id: str, attempt: int) -> bool:
        return any(key[:2] == (action_id, attempt) for key in (*self.running, *self.waiting))

    def begin(self, dispatch: Dispatch) -> None:
        (self.running if dispatch.spec.pure else self.waiting)[key_of(dispatch)] = dispatch

    def grant(self, action_id: str, attempt: int, nonce: str) -> None:
        dispatch = self.waiting.pop((action_id, attempt, nonce), None)
        if dispatch is not None:
            self.running[key_of(dispatch)] = dispatch

    def stop(self, action_id: str, attempt: int) -> None:
        for held in (self.running, self.waiting):
            for key in [key for key in held if key[:2] == (action_id, attempt)]:
                del held[key]

    def die(self) -> None:
        self.alive = False
        self.running.clear()
        self.waiting.clear()

    def finish(self, key: Key, handoff: Handoff) -> None:
        self.running.pop(key, None)
        self.ended[key] = handoff


def honest_answer(script: Script, repository: Repository, dispatch: Dispatch) -> Handoff:
    """What a worker without faults hands in: a function of the script and the commit alone."""
    spec = dispatch.spec
    match spec.kind:
        case ActionKind.PLAN:
            return done(dispatch, output={"plan": _plan(script, dispatch).model_dump(mode="json")})
        case ActionKind.BASELINE:
            counts = {
                "passed": 9,
                "failed": 0,
                "duration_ms": 60_000 if script.slow_suite else 10,
                "results": "x",
            }
            return done(dispatch, verdict=script.baseline, output=counts)
        case ActionKind.CHANGE | ActionKind.TWIN:
            return _change(script.rule(spec.rule_id or ""), repository, dispatch)
        case ActionKind.REVIEW:
            return _review(script.rule(spec.rule_id or ""), repository, dispatch)
        case ActionKind.TEST | ActionKind.CANARY_TEST:
            bad = {one.name for one in script.rules if one.red}
            is_red = any(rule in bad for rule, _ in repository.commits[spec.base])
            return red(dispatch) if is_red else done(dispatch, verdict=Verdict.PASS)


def evil_answer(script: Script, repository: Repository, dispatch: Dispatch) -> Handoff:
    """What somebody hands in who wants to get something past the gates."""
    spec = dispatch.spec
    match spec.kind:
        case ActionKind.CHANGE | ActionKind.TWIN:
            result = repository.commit(spec.base, frozenset({("evil", "0000")}), "evil")
            return done(dispatch, result=result, output={"sites": 1, "files_seen": 1})
        case ActionKind.REVIEW | ActionKind.TEST | ActionKind.CANARY_TEST:
            return done(dispatch, verdict=Verdict.PASS)
        case ActionKind.PLAN | ActionKind.BASELINE:
            return honest_answer(script, repository, dispatch)


def _plan(script: Script, dispatch: Dispatch) -> Plan:
    cuts = [one for one in dispatch.spec.input["known"] if one["outcome"] == "time_limit"]
    planned: list[PlannedRule] = []
    for one in script.rules:
        recuts = sum(1 for known in cuts if known["rule"] == one.name)
        count = min(6, script.shard_count * 2**recuts) if one.cut else 1
        planned.append(
            PlannedRule(
                rule=one.name,
                contract="rewrite.pattern@1",
                input={"match": one.name},
                shardable=Shardable.FILE if one.cut else Shardable.WHOLE,
                shards=shards(count),
                canary=0 if one.cut and count > 1 else None,
                run_ahead=script.run_ahead,
            )
        )
    return Plan(revision=dispatch.spec.input["revision"], reason="simulated", rules=tuple(planned))


def _change(rule: RuleScript, repository: Repository, dispatch: Dispatch) -> Handoff:
    spec = dispatch.spec
    there = repository.commits[spec.base]
    paths = [path for path in rule.touches if spec.reach.admits(path) and (rule.name, path) not in there]
    if not paths:
        return unchanged(dispatch)
    if rule.slow and rule.cut and len(paths) > 1:
        return failed(dispatch, "time_limit", f"{len(paths)} paths were too many")
    sites = frozenset((rule.name, path) for path in paths)
    result = repository.commit(spec.base, sites, rule.name)
    return done(
        dispatch, result=result, output={"sites": len(sites), "files_seen": 6}, engines={"ast-grep": "1"}
    )


def _review(rule: RuleScript, repository: Repository, dispatch: Dispatch) -> Handoff:
    spec = dispatch.spec
    result = spec.input["result"]
    sites = repository.delta(spec.base, result) if result else frozenset()
    if rule.refused and sites:
        return refused(dispatch)
    if (rule.name, rule.refused_path) in sites:
        return refused(dispatch, rule.refused_path)
    return done(dispatch, verdict=Verdict.PASS)

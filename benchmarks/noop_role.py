"""A role that does nothing, for measuring what everything around the work costs: `python -m benchmarks.noop_role`.

Its planner cuts the one rule into as many steps as the recipe asks for.
"""

import sys
from collections.abc import Callable

from bus.program import run_role
from bus.runtime import RoleSpec
from bus.settings import RoleSettings
from bus.workers import InLoopWorkers, Workers
from schemas.action import Action
from schemas.contracts import ContractDocument, ContractRegistry
from schemas.handoff import Handoff
from schemas.plan import Plan, PlannedRule
from schemas.scope import Shard
from schemas.words import Outcome, Shardable

NOOP = ContractDocument.model_validate(
    {
        "name": "bench.noop",
        "version": 1,
        "title": "Nothing",
        "description": "Does nothing, and says so.",
        "pool": "bench",
        "changes": "nothing",
        "time_limit_s": {"default": 60, "longest": 60},
        "side_effects": "None.",
        "shardable": "file",
        "input": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"steps": {"type": "integer", "minimum": 1, "default": 1}},
        },
        "output": {"type": "object"},
    }
)


async def nothing(action: Action, note: Callable[[str], None]) -> Handoff:
    """Done at once."""
    return _handoff(action, Outcome.NO_CHANGE)


async def plan(action: Action, note: Callable[[str], None]) -> Handoff:
    """As many shards as the rule's `steps`."""
    rules = tuple(
        PlannedRule(
            rule=one["rule"],
            contract=one["contract"],
            input=one["input"],
            shardable=Shardable.FILE,
            shards=_shards(one["input"]["steps"]),
        )
        for one in action.input["rules"]
    )
    made = Plan(revision=action.input["revision"], reason="for the benchmark", rules=rules)
    return _handoff(action, Outcome.DONE, {"plan": made.model_dump(mode="json")})


def _shards(count: int) -> tuple[Shard, ...]:
    cuts = ["", *(f"{number:06d}" for number in range(1, count))]
    return tuple(Shard(start=a, stop=b) for a, b in zip(cuts, [*cuts[1:], None], strict=True))


def _handoff(action: Action, outcome: Outcome, output: dict[str, object] | None = None) -> Handoff:
    return Handoff(
        action_id=action.action_id,
        attempt=action.attempt,
        nonce=action.nonce,
        outcome=outcome,
        base=action.base,
        output=output or {},
    )


def build_noop(settings: RoleSettings) -> tuple[RoleSpec, Workers]:
    """The executors of the benchmark."""
    return RoleSpec(
        role="bench", pool="bench", contracts=(NOOP,), engines={}, slots=settings.slots
    ), InLoopWorkers(nothing)


def build_planner(settings: RoleSettings) -> tuple[RoleSpec, Workers]:
    """The benchmark's planner."""
    contract = ContractRegistry.builtin().get("plan.draft")
    spec = RoleSpec(role="planner", pool="planner", contracts=(contract,), engines={}, slots=1)
    return spec, InLoopWorkers(plan)


if __name__ == "__main__":
    which, *rest = sys.argv[1:]
    sys.exit(
        run_role("bench", build_noop, rest) if which == "bench" else run_role("planner", build_planner, rest)
    )

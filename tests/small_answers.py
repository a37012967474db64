"""What the workers of a small fleet answer: honest ones, whose changes are real commits in the hub."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from schemas.action import Action
from schemas.handoff import Evidence, Handoff
from schemas.plan import Plan, PlannedRule
from schemas.scope import Shard
from schemas.words import Outcome, Shardable, Verdict
from supervisor.believing import RESULT_GATES
from workspace.entries import NewFile
from workspace.hub import Hub
from workspace.refs import attempt_ref

OnNote = Callable[[str], None]
Answer = Callable[[Action, OnNote], Awaitable[Handoff]]


class Place(Protocol):
    """What answers need to know of the fleet."""

    hub: Hub
    shards: int


def evidence(claim: str = "it was done") -> tuple[Evidence, ...]:
    return (Evidence(claim=claim, verdict=Verdict.PASS, command=("true",), exit_code=0, log_digest="0" * 64),)


def handoff(action: Action, outcome: Outcome = Outcome.DONE, **fields: Any) -> Handoff:
    return Handoff(
        action_id=action.action_id,
        attempt=action.attempt,
        nonce=action.nonce,
        outcome=outcome,
        base=action.base,
        **{"evidence": evidence(), **fields},
    )


def default_answers(fleet: Place) -> dict[str, Answer]:
    async def plan(action: Action, note: OnNote) -> Handoff:
        cuts = ["", *(f"{letter}" for letter in "bcdefgh"[: fleet.shards - 1])]
        shards = tuple(Shard(start=a, stop=b) for a, b in zip(cuts, [*cuts[1:], None], strict=True))
        rules = tuple(
            PlannedRule(
                rule=one["rule"],
                contract=one["contract"],
                input=one["input"],
                shardable=Shardable(one["shardable"]),
                shards=shards if one["shardable"] == "file" else (Shard(),),
                canary=0 if one["shardable"] == "file" and fleet.shards > 1 else None,
            )
            for one in action.input["rules"]
        )
        made = Plan(revision=action.input["revision"], reason="as asked", rules=rules)
        return handoff(action, output={"plan": made.model_dump(mode="json")})

    async def change(action: Action, note: OnNote) -> Handoff:
        return change_files(fleet.hub, action)

    async def review(action: Action, note: OnNote) -> Handoff:
        gates = RESULT_GATES | {action.input["proof"]}
        return handoff(action, verdict=Verdict.PASS, output={"gates": dict.fromkeys(gates, "pass")})

    async def test(action: Action, note: OnNote) -> Handoff:
        output = {"passed": 3, "failed": 0, "skipped": 0, "duration_ms": 5, "results": None}
        return handoff(action, verdict=Verdict.PASS, output=output)

    return {"plan.draft": plan, "rewrite.pattern": change, "review.change": review, "test.run": test}


def change_files(hub: Hub, action: Action) -> Handoff:
    """Append the rule's `replace` to every file in reach that holds its `match`."""
    tree = hub.list_tree(action.base)
    find, put = action.input["match"].encode(), action.input["replace"].encode()
    changes: dict[str, NewFile | None] = {}
    for path in action.reach.select(tree):
        data = hub.read(tree[path].oid)
        if find in data:
            changes[path] = NewFile(tree[path].mode, data.replace(find, put))
    output = {"sites": len(changes), "files_seen": len(tree)}
    if not changes:
        return handoff(action, Outcome.NO_CHANGE, output=output)
    result = hub.commit(action.base, changes, message=f"{action.rule}\n")
    hub.publish(attempt_ref(action.task, action.step, action.attempt), result)
    files = tuple(one.as_file_change() for one in hub.changes(action.base, result))
    return handoff(action, result=result, files=files, output=output, engines={"fake": "1"})

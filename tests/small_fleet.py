"""A whole fleet inside one test: the real supervisor, journal and hub on the memory bus, with workers of a few lines.

The workers do real git work (they change files and make commits) but need no engine, so a test says exactly what each
step does, and when.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bus.api import Bus, Exchange, Outgoing
from bus.memory import MemoryBus
from bus.memory_broker import MemoryBroker
from bus.runtime import RoleSpec, serve
from bus.stopping import StopSignal
from bus.workers import InLoopWorkers
from schemas.action import Action
from schemas.clock import new_id, now_us
from schemas.contracts import ContractDocument, ContractRegistry
from schemas.envelope import Envelope, Sender
from schemas.handoff import Evidence, Handoff
from schemas.messages import TaskCancelRequested, TaskSubmitted
from schemas.plan import Plan, PlannedRule
from schemas.scope import Shard
from schemas.task import TaskRequest, TestCommand
from schemas.words import Outcome, Shardable, Verdict
from supervisor.believing import RESULT_GATES
from supervisor.house import House, opened_house
from supervisor.hub_work import HubWork
from supervisor.journal.reader import JournalReader
from supervisor.loop import Supervisor
from supervisor.minting import Mint
from tests.unit.workspace_repos import root_commit
from workspace.entries import NewFile
from workspace.hub import Hub
from workspace.refs import attempt_ref, base_ref

ENVIRONMENT = "test"
LIMIT_S = 20.0
Answer = Callable[[Action, Callable[[str], None]], Awaitable[Handoff]]


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


@dataclass
class Fleet:
    """Everything that runs; `answers` may be replaced before roles start."""

    state_dir: Path
    broker: MemoryBroker
    hub: Hub
    base: str
    public_key: bytes
    shards: int = 3
    answers: dict[str, Answer] = field(default_factory=dict)
    ran: list[tuple[str, int]] = field(default_factory=list)
    stops: list[StopSignal] = field(default_factory=list)
    tasks: list["asyncio.Task[None]"] = field(default_factory=list)
    client: Bus | None = None

    def bus(self) -> MemoryBus:
        return MemoryBus(self.broker, ENVIRONMENT)

    async def start_role(
        self, pool: str, *, slots: int = 4, contracts: tuple[str, ...] | None = None, name: str = ""
    ) -> StopSignal:
        registry = ContractRegistry.builtin()
        documents: list[ContractDocument] = [one for one in registry if one.pool == pool]
        stop = StopSignal()
        bus = self.bus()
        await bus.start()
        spec = RoleSpec(role=pool, pool=pool, contracts=tuple(documents), engines={}, slots=slots)

        async def answer(action: Action, note: Callable[[str], None]) -> Handoff:
            self.ran.append((action.step, action.attempt))
            return await self.answers[action.contract.split("@")[0]](action, note)

        async def run() -> None:
            try:
                await serve(
                    spec,
                    bus,
                    InLoopWorkers(answer),
                    public_key=self.public_key,
                    instance=name or f"{pool}-{len(self.stops)}",
                    stop=stop,
                    heartbeat_s=0.2,
                )
            finally:
                await bus.close()

        self.stops.append(stop)
        self.tasks.append(asyncio.create_task(run()))
        return stop

    async def submit(self, recipe: dict[str, Any], **changes: Any) -> str:
        task = new_id()
        self.hub.set_ref(base_ref(task), self.base, None)
        fields: dict[str, Any] = {
            "recipe": recipe,
            "recipe_name": recipe["recipe"],
            "repository": "repo",
            "base": self.base,
            "base_ref": "main",
            "branch": "rolecall/test",
            "test": TestCommand(command=("true",)),
        }
        request = TaskRequest(**{**fields, **changes})
        await self.say("task.submitted", TaskSubmitted(request=request).model_dump(), task)
        return task

    async def cancel(self, task: str) -> None:
        await self.say("task.cancel_requested", TaskCancelRequested().model_dump(), task)

    async def say(self, kind: str, body: dict[str, Any], task: str) -> None:
        assert self.client is not None
        envelope = Envelope(
            environment=ENVIRONMENT,
            message_id=new_id(),
            correlation_id=task,
            kind=kind,
            sender=Sender(role="client", instance="client-1", version="0"),
            created_at=now_us(),
            body=body,
        )
        await self.client.publish(Outgoing(Exchange.EVENTS, f"{kind}.client", envelope))

    async def wait(self, true: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
        async with asyncio.timeout(limit_s):
            while not true():
                await asyncio.sleep(0.01)

    async def ended(self, task: str) -> str:
        """The status in which the task ended."""
        reader = JournalReader.open(self.state_dir)
        try:
            await self.wait(
                lambda: any(one.task == task and one.ended_at is not None for one in reader.tasks())
            )
            return str(next(one for one in reader.tasks() if one.task == task).status)
        finally:
            reader.close()


@asynccontextmanager
async def supervising(fleet: Fleet, house: House) -> AsyncIterator[Supervisor]:
    """A supervisor at work."""
    bus = fleet.bus()
    await bus.start()
    sender = Sender(role="supervisor", instance=f"supervisor-{house.epoch}", version="0")
    with Hub.open(house.hub) as hub:
        supervisor = Supervisor(
            bus=bus,
            journal=house.journal,
            hub=HubWork(hub),
            mint=Mint(ENVIRONMENT, sender, house.key),
            epoch=house.epoch,
        )
        stop = asyncio.Event()
        running = asyncio.create_task(supervisor.run(stop))
        try:
            yield supervisor
        finally:
            stop.set()
            await running
            await bus.close()


@asynccontextmanager
async def small_fleet(folder: Path) -> AsyncIterator[Fleet]:
    """A fleet with a supervisor, one process a role, and a repository of three Python files in the hub."""
    broker = MemoryBroker()
    with opened_house(folder / "state") as house, Hub.open(house.hub) as hub:
        base = root_commit(hub, FILES)
        fleet = Fleet(folder / "state", broker, hub, base, house.key.public_key)
        fleet.answers = default_answers(fleet)
        fleet.client = fleet.bus()
        await fleet.client.start()
        async with supervising(fleet, house):
            for pool in ("planner", "executor", "reviewer", "tester"):
                await fleet.start_role(pool)
            try:
                yield fleet
            finally:
                for stop in fleet.stops:
                    stop.at_once("the test is over")
                await asyncio.gather(*fleet.tasks, return_exceptions=True)
        await fleet.client.close()


FILES = {"a.py": b"one = 1\n", "b.py": b"one = 2\ntwo = 3\n", "c.py": b"two = 4\n", "d.txt": b"words\n"}


def default_answers(fleet: Fleet) -> dict[str, Answer]:
    async def plan(action: Action, note: Callable[[str], None]) -> Handoff:
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

    async def change(action: Action, note: Callable[[str], None]) -> Handoff:
        return change_files(fleet.hub, action)

    async def review(action: Action, note: Callable[[str], None]) -> Handoff:
        gates = RESULT_GATES | {action.input["proof"]}
        return handoff(action, verdict=Verdict.PASS, output={"gates": dict.fromkeys(gates, "pass")})

    async def test(action: Action, note: Callable[[str], None]) -> Handoff:
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


def recipe(*pairs: tuple[str, str]) -> dict[str, Any]:
    """A recipe that replaces the first of each pair by the second."""
    return {
        "recipe": "swap",
        "rules": [
            {
                "id": f"{find}-to-{put}",
                "contract": "rewrite.pattern@1",
                "input": {"language": "python", "match": find, "replace": put},
            }
            for find, put in pairs
        ],
    }

"""A whole fleet inside one test: the real supervisor, journal and hub on the memory bus, with workers of a few lines.

The supervisor lives as often as it has to: a test may stop it, kill it, or have it crash at a certain write or
acknowledgement; it then starts again in the same state folder, as its process manager would have it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from bus.api import Delivery, Exchange, Outgoing
from bus.memory import MemoryBus
from bus.memory_broker import MemoryBroker, Stored
from bus.runtime import Patience, RoleSpec, serve
from bus.stopping import StopSignal
from bus.topology import Topology
from bus.workers import InLoopWorkers
from schemas.action import Action
from schemas.clock import new_id, now_us
from schemas.contracts import ContractDocument, ContractRegistry
from schemas.envelope import MAX_INLINE_BYTES, Envelope, Sender
from schemas.handoff import Handoff
from schemas.messages import TaskCancelRequested, TaskSubmitted
from schemas.task import TaskRequest, TestCommand
from supervisor.house import House, opened_house
from supervisor.hub_work import HubWork
from supervisor.journal.journal import Group, Journal
from supervisor.journal.reader import JournalReader
from supervisor.loop import Supervisor
from supervisor.minting import Mint
from tests.small_answers import Answer, default_answers
from tests.unit.workspace_repos import root_commit
from workspace.hub import Hub
from workspace.refs import base_ref, head_ref, task_refs

ENVIRONMENT = "test"
LIMIT_S = 30.0
POOLS = ("planner", "executor", "reviewer", "tester")
FILES = {"a.py": b"one = 1\n", "b.py": b"one = 2\ntwo = 3\n", "c.py": b"two = 4\n", "d.txt": b"words\n"}
# A worker of a test that is told to leave has nothing worth waiting for.
HURRIED = Patience(lease_s=5.0, kill_s=1.0, drain_s=5.0, farewell_s=1.0)


class SimulatedCrashError(Exception):
    """The supervisor's process ends here, at once."""


@dataclass
class CrashPoints:
    """Where the supervisor crashes, counted over all its lives: at which write of the journal (before or after it is
    on the disk), or before which acknowledgement.
    """

    before_writes: frozenset[int] = frozenset()
    after_writes: frozenset[int] = frozenset()
    before_acks: frozenset[int] = frozenset()
    writes: int = 0
    acks: int = 0


class CrashingJournal(Journal):
    """A journal whose process may crash at a write."""

    def __init__(self, engine: Engine, points: CrashPoints) -> None:
        super().__init__(engine)
        self._points = points

    def write(self, group: Group) -> None:
        """Write, and crash where the test wants it."""
        if group.is_empty:
            return
        self._points.writes += 1
        if self._points.writes in self._points.before_writes:
            raise SimulatedCrashError("before a write")
        super().write(group)
        if self._points.writes in self._points.after_writes:
            raise SimulatedCrashError("after a write")


class CrashingBus(MemoryBus):
    """A bus whose process may crash before it acknowledges what it has worked on."""

    points: CrashPoints

    async def settle_many(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge, or crash where the test wants it."""
        self.points.acks += 1
        if self.points.acks in self.points.before_acks:
            raise SimulatedCrashError("before an acknowledgement")
        await super().settle_many(deliveries)


@dataclass
class Fleet:
    """Everything that runs. `answers` may be replaced at any time; `ran` lists (step, attempt) as workers began them."""

    state_dir: Path
    broker: MemoryBroker
    hub: Hub
    base: str
    public_key: bytes
    shards: int = 3
    answers: dict[str, Answer] = field(default_factory=dict)
    ran: list[tuple[str, int]] = field(default_factory=list)
    crashes: CrashPoints = field(default_factory=CrashPoints)
    restarts: int = 0
    supervisor: Supervisor | None = None
    lives: "asyncio.Task[None] | None" = None

    def __post_init__(self) -> None:
        self.answers = default_answers(self)
        self.client = self.bus()
        self.topology = Topology(ENVIRONMENT)
        self._roles: dict[str, tuple[StopSignal, asyncio.Task[None]]] = {}
        self._wanted = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._away = asyncio.Event()
        self._away.set()

    def bus(self) -> MemoryBus:
        return MemoryBus(self.broker, ENVIRONMENT)

    # ---- roles ---------------------------------------------------------------------------------------------------

    async def start_role(
        self,
        pool: str,
        *,
        slots: int = 4,
        contracts: tuple[ContractDocument, ...] | None = None,
        name: str = "",
    ) -> str:
        """Start a worker process; its instance."""
        instance = name or f"{pool}-{len(self._roles)}"
        served = contracts or tuple(one for one in ContractRegistry.builtin() if one.pool == pool)
        spec = RoleSpec(role=pool, pool=pool, contracts=served, engines={}, slots=slots)
        stop, bus = StopSignal(), self.bus()
        await bus.start()

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
                    instance=instance,
                    stop=stop,
                    heartbeat_s=0.2,
                    patience=HURRIED,
                )
            finally:
                await bus.close()

        self._roles[instance] = (stop, asyncio.create_task(run()))
        return instance

    async def drain_role(self, instance: str) -> None:
        """Have a worker finish what it runs and leave."""
        stop, task = self._roles[instance]
        stop.drain("SIGTERM")
        await task

    async def kill_role(self, instance: str) -> None:
        """End a worker as kill -9 does: it says nothing more."""
        _, task = self._roles[instance]
        task.cancel()
        await asyncio.wait({task})

    # ---- the supervisor ------------------------------------------------------------------------------------------

    async def supervise(self) -> None:
        """Have a supervisor running, life after life, while it is wanted."""
        while True:
            await self._wanted.wait()
            self._away.clear()
            try:
                with opened_house(self.state_dir) as house:
                    await self._live(house)
            finally:
                self._away.set()

    async def _live(self, house: House) -> None:
        bus = CrashingBus(self.broker, ENVIRONMENT)
        bus.points = self.crashes
        await self.broker.running.wait()
        await bus.start()
        house = replace(house, journal=CrashingJournal(house.journal._engine, self.crashes))
        sender = Sender(role="supervisor", instance=f"supervisor-{house.epoch}", version="0")
        with Hub.open(house.hub) as hub:
            hub_work = HubWork(hub)
            self.supervisor = Supervisor(
                bus=bus,
                journal=house.journal,
                hub=hub_work,
                mint=Mint(ENVIRONMENT, sender, house.key),
                epoch=house.epoch,
            )
            self._stop = asyncio.Event()
            if not self._wanted.is_set():  # told to stop while it started
                self._stop.set()
            self._life = asyncio.create_task(self.supervisor.run(self._stop))
            self._life.add_done_callback(lambda life: life.cancelled() or life.exception())
            await asyncio.wait({self._life})
            # What a dead process had under way in its threads is over before the next one has the lock.
            await hub_work.close()
            await asyncio.to_thread(self.supervisor._database.shutdown)
            await bus.close()
        if self._life.cancelled():
            self.restarts += 1
        elif (error := self._life.exception()) is not None:
            _only_simulated(error)
            self.restarts += 1

    def start_supervisor(self) -> None:
        """Have a supervisor, from now on and after each crash."""
        self._wanted.set()

    async def stop_supervisor(self) -> None:
        """Stop it in order, as SIGTERM does."""
        self._wanted.clear()
        self._stop.set()
        await self._away.wait()

    async def kill_supervisor(self) -> None:
        """End it wherever it stands; it starts again."""
        await self.wait(lambda: self._life is not None and not self._life.done())
        assert self._life is not None
        self._life.cancel()
        await asyncio.wait({self._life})

    @property
    def lease_clock_stands(self) -> bool:
        """True while no probe of the supervisor comes round."""
        return self.supervisor is not None and self.supervisor.fleet.steady_since(now_us()) is None

    # ---- clients -------------------------------------------------------------------------------------------------

    async def submit(self, recipe: dict[str, Any], *, task: str = "", **changes: Any) -> str:
        """Submit a recipe; the task's id."""
        task = task or new_id()
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
        data = request.model_dump_json().encode()
        if len(data) <= MAX_INLINE_BYTES:
            body = TaskSubmitted(request=request)
        else:
            oid = self.hub.write_blob(data, ref=f"{task_refs(task)}request")
            body = TaskSubmitted(request_blob=oid)
        await self.say("task.submitted", body.model_dump(), task)
        return task

    async def cancel(self, task: str) -> None:
        await self.say("task.cancel_requested", TaskCancelRequested().model_dump(), task)

    async def say(self, kind: str, body: dict[str, Any], task: str, **changes: Any) -> Envelope:
        """Publish a message, as a client unless `sender` says otherwise; what was published."""
        known: dict[str, Any] = {
            "environment": ENVIRONMENT,
            "message_id": new_id(),
            "correlation_id": task,
            "kind": kind,
            "sender": Sender(role="client", instance="client-1", version="0"),
            "created_at": now_us(),
            "body": body,
        }
        envelope = Envelope(**known | changes)
        await self.client.publish(Outgoing(Exchange.EVENTS, f"{kind}.{envelope.sender.role}", envelope))
        return envelope

    def throw(self, raw: bytes, *, key: str = "task.submitted.client") -> None:
        """Put bytes onto the events exchange that no bus of ours would send."""
        self.broker.publish(self.topology.exchange(Exchange.EVENTS), Stored(raw, key))

    # ---- what came of it -----------------------------------------------------------------------------------------

    async def wait(self, true: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(limit_s):
            while not true():
                if self.lives is not None and self.lives.done():
                    self.lives.result()  # a defect, not a crash that was asked for
                await asyncio.sleep(0.01)

    async def ended(self, task: str) -> str:
        """The status in which the task ended."""
        with self.reading() as reader:
            await self.wait(lambda: any(one.task == task and one.ended_at for one in reader.tasks()))
            return str(next(one for one in reader.tasks() if one.task == task).status)

    def head(self, task: str) -> str:
        """Where the task's head stands in the hub."""
        return self.hub.refs(head_ref(task))[head_ref(task)]

    @contextmanager
    def reading(self) -> Iterator[JournalReader]:
        """A reader of the journal."""
        reader = JournalReader.open(self.state_dir)
        try:
            yield reader
        finally:
            reader.close()

    async def close(self) -> None:
        """End everybody at once."""
        for stop, _ in self._roles.values():
            stop.at_once("the test is over")
        await asyncio.gather(*(task for _, task in self._roles.values()), return_exceptions=True)
        await self.stop_supervisor()
        await self.client.close()


@asynccontextmanager
async def small_fleet(
    folder: Path, *, pools: Sequence[str] = POOLS, crashes: CrashPoints | None = None
) -> AsyncIterator[Fleet]:
    """A fleet with a supervisor, one process a role, and a repository of four files in the hub."""
    with opened_house(folder / "state") as house:
        place, public_key = house.hub, house.key.public_key
    with Hub.open(place) as hub:
        fleet = Fleet(folder / "state", MemoryBroker(), hub, root_commit(hub, FILES), public_key)
        fleet.crashes = crashes or CrashPoints()
        await fleet.client.start()
        fleet.lives = lives = asyncio.create_task(fleet.supervise())
        fleet.start_supervisor()
        for pool in pools:
            await fleet.start_role(pool)
        try:
            yield fleet
            if lives.done():
                lives.result()
        finally:
            await fleet.close()
            lives.cancel()
            await asyncio.wait({lives})


def _only_simulated(error: BaseException) -> None:
    """Raises what was no crash that the test asked for."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            _only_simulated(one)
    elif not isinstance(error, SimulatedCrashError):
        raise error


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

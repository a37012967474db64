"""A stack: broker, supervisor and all roles on one machine, started together, watched, and stopped in order.

The connection file appears when every role has announced itself, and goes before anything else at the end. The end:
roles finish what they do, then the supervisor, then the private node. Told twice, everything is killed.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from bus.amqp import AmqpBus
from bus.connection_file import Connection, remove_connection, write_connection
from bus.grants import SigningKey
from bus.instance import instance_name, started_us
from bus.owner_only import make_folder
from bus.stopping import StopSignal
from rolecall.processes.child import Child, ChildSpec, Say
from rolecall.processes.locks import USERS_LOCK, FileLock, only_stack
from rolecall.processes.plan import DRAIN_S, StackPlan, children
from rolecall.processes.private_node import PrivateNode, start_node
from schemas.errors import SettingsError
from supervisor.house import HUB_FOLDER, KEY_FILE
from supervisor.journal.reader import JournalReader
from workspace.hub import Hub

NODE_FOLDER = "rabbitmq"
# Everything is there in a few seconds; a machine busy with other things takes several times that.
READY_LIMIT_S = 90.0
# Above the drain limit that the roles themselves keep.
ROLES_STOP_LIMIT_S = DRAIN_S + 15.0
SUPERVISOR_STOP_LIMIT_S = 20.0
KILL_LIMIT_S = 5.0
POLL_S = 0.2
NODE_POLL_S = 2.0


@dataclass(frozen=True, slots=True)
class Ready:
    """A stack that answers."""

    connection: Connection
    has_private_node: bool


class Stack:
    """One stack over its life."""

    def __init__(
        self,
        plan: StackPlan,
        say: Say,
        *,
        inherited: Mapping[str, str],
        on_ready: Callable[[Ready], None] = lambda _: None,
        until_unused: bool = False,
    ) -> None:
        self._plan = plan
        self._say = say
        self._inherited = inherited
        self._on_ready = on_ready
        self._users = FileLock(plan.state_dir / USERS_LOCK) if until_unused else None
        self._node: PrivateNode | None = None
        self._supervisor: Child | None = None
        self._roles: list[Child] = []
        self._keeping: dict[Child, asyncio.Task[None]] = {}

    async def run(self, stop: StopSignal) -> None:
        """Start everything, keep it, end it when `stop` says so. Raises RolecallError if it cannot be kept."""
        with only_stack(make_folder(self._plan.state_dir), self._plan.environment):
            try:
                await self._run(stop)
            finally:
                if self._node is not None:
                    self._tell("Stopping the private RabbitMQ node.")
                    await asyncio.to_thread(self._node.kill if stop.is_at_once else self._node.stop)
                if self._users is not None:
                    self._users.release()

    async def _run(self, stop: StopSignal) -> None:
        supervisor, roles, connection = await self._prepare()
        self._supervisor = Child(supervisor, self._say)
        self._roles = [Child(one, self._say) for one in roles]
        async with AsyncExitStack() as cleanup:
            self._keeping = {
                child: asyncio.create_task(child.keep()) for child in (self._supervisor, *self._roles)
            }
            cleanup.push_async_callback(self._wind_down, stop, connection)
            serving = asyncio.create_task(self._serve(stop, connection))
            cleanup.callback(serving.cancel)
            ends = {serving, *self._keeping.values()}
            while not serving.done():
                done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                ends -= done
                for one in done:
                    one.result()  # a child that was given up ends the stack
            serving.result()

    async def _prepare(self) -> tuple[ChildSpec, Sequence[ChildSpec], Connection]:
        """Broker, hub and key: what must be there before any child can start."""
        state_dir = self._plan.state_dir
        key = SigningKey.load_or_create(state_dir / KEY_FILE)
        hub = state_dir / HUB_FOLDER
        await asyncio.to_thread(lambda: Hub.create(hub).close())
        url = self._plan.broker_url or await self._start_node()
        await _check_broker(self._plan.environment, url)
        public_key = key.public_key.hex()
        supervisor, roles = children(
            self._plan,
            broker_url=url,
            hub=str(hub),
            public_key=public_key,
            parent_pid=os.getpid(),
            inherited=self._inherited,
        )
        connection = Connection(
            broker_url=url,
            hub=str(hub),
            public_key=public_key,
            pid=os.getpid(),
            started_at=started_us(os.getpid()) or 0,
        )
        return supervisor, roles, connection

    async def _start_node(self) -> str:
        self._tell("Starting a private RabbitMQ node.")
        self._node = await asyncio.to_thread(start_node, self._plan.state_dir / NODE_FOLDER)
        return self._node.url

    async def _serve(self, stop: StopSignal, connection: Connection) -> None:
        """Wait until all roles are there, say so, and then for the end."""
        arriving = asyncio.create_task(self._all_here())
        stopped = asyncio.create_task(stop.wait_draining())
        try:
            await asyncio.wait({arriving, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if stopped.done():
                return
            arriving.result()
            write_connection(self._plan.state_dir, connection)
            self._on_ready(Ready(connection, self._node is not None))
            while not stop.is_draining and not self._is_unused():
                with suppress(TimeoutError):
                    async with asyncio.timeout(NODE_POLL_S if self._users is None else POLL_S):
                        await stop.wait_draining()
                await self._mend_node()
        finally:
            arriving.cancel()
            stopped.cancel()

    async def _all_here(self) -> None:
        """Returns once every child is in the roll call. Raises SettingsError after a limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_LIMIT_S):
                while True:
                    missing = await asyncio.to_thread(self._missing)
                    if not missing:
                        return
                    await asyncio.sleep(POLL_S)
        raise SettingsError(
            f"Not there after {READY_LIMIT_S:g} s: {', '.join(missing)}.",
            suggestion=f"Their logs are in {self._plan.state_dir / 'logs'}.",
        )

    def _missing(self) -> list[str]:
        try:
            reader = JournalReader.open(self._plan.state_dir)
        except SettingsError:
            return ["supervisor"]
        try:
            here = {line.pid for line in reader.workers() if line.state == "ready"}
        finally:
            reader.close()
        return [child.spec.name for child in self._roles if child.pid not in here]

    async def _mend_node(self) -> None:
        node = self._node
        if node is None or node.is_alive:
            return
        self._tell("! The private RabbitMQ node ended; starting it again.")
        self._node = await asyncio.to_thread(start_node, node.folder)

    def _is_unused(self) -> bool:
        # The exclusive lock is kept from here to the end: nobody joins a stack that is ending.
        if self._users is None or not self._users.take(shared=False):
            return False
        self._tell("Nobody uses this stack any more.")
        return True

    async def _wind_down(self, stop: StopSignal, connection: Connection) -> None:
        remove_connection(self._plan.state_dir, connection)
        stop.drain("the stack ends")
        self._tell("Stopping: roles first, then the supervisor.")
        await self._end(self._roles, stop, ROLES_STOP_LIMIT_S)
        if self._supervisor is not None:
            await self._end([self._supervisor], stop, SUPERVISOR_STOP_LIMIT_S)

    async def _end(self, group: Sequence[Child], stop: StopSignal, limit_s: float) -> None:
        for child in group:
            child.ask_to_stop()
        gone = asyncio.create_task(_ended({self._keeping[child] for child in group}))
        at_once = asyncio.create_task(stop.wait_at_once())
        await asyncio.wait({gone, at_once}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        at_once.cancel()
        if not gone.done():
            late = [child for child in group if child.pid is not None]
            self._tell(f"! Killing {', '.join(child.spec.name for child in late)}.")
            for child in late:
                child.kill()
            await asyncio.wait({gone}, timeout=KILL_LIMIT_S)

    def _tell(self, text: str) -> None:
        self._say("up", text)


async def _ended(tasks: "set[asyncio.Task[None]]") -> None:
    await asyncio.wait(tasks)


async def _check_broker(environment: str, url: str) -> None:
    """Raises BrokerUnreachableError or TopologyMismatchError before anything else is started."""
    bus = AmqpBus(environment, url, instance=instance_name("up"))
    try:
        await bus.start()
    finally:
        await bus.close()

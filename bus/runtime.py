"""serve(): one role process, from its announcement to its goodbye.

Order at the start: declare the pool's queue, listen for orders, announce (durable), and only then consume. At the end:
stop consuming, finish what runs within a limit, see the handoffs confirmed, say goodbye. In between, work goes through
`bus.taking`, and heartbeats (`bus.rollcall`) and orders (`bus.orders`) go on whatever else waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import structlog

from bus.answers import FIRST_RETRY_S, LONGEST_RETRY_S, Answers
from bus.api import Bus, TopologyMismatchError
from bus.attempts import AttemptTable, Stop
from bus.metrics import Metrics
from bus.orders import Orders
from bus.performing import Patience
from bus.rollcall import RoleState, RollCall
from bus.served import RoleSpec
from bus.stopping import StopSignal
from bus.taking import Taking
from bus.workers import Workers
from schemas import clock
from schemas.envelope import Sender
from schemas.errors import RolecallError
from schemas.handoff import Failure
from schemas.version import VERSION
from schemas.words import Outcome

__all__ = ["Patience", "RoleSpec", "serve"]

log = structlog.get_logger()

HEARTBEAT_S = 5.0


async def serve(
    spec: RoleSpec,
    bus: Bus,
    workers: Workers,
    *,
    public_key: bytes,
    instance: str,
    stop: StopSignal,
    heartbeat_s: float = HEARTBEAT_S,
    patience: Patience | None = None,
    metrics: Metrics | None = None,
    now_us: Callable[[], int] = clock.now_us,
) -> None:
    """Serve a pool until told to stop. The bus is started and both it and the workers are closed by the caller.

    Returns after a drain, or at once (with what runs killed) when `stop` says so.
    """
    async with asyncio.TaskGroup() as group:
        crew = _Crew(group)
        role = _Role(
            spec,
            bus,
            workers,
            public_key=public_key,
            instance=instance,
            stop=stop,
            heartbeat_s=heartbeat_s,
            patience=patience or Patience(),
            metrics=metrics or Metrics(),
            now_us=now_us,
            crew=crew,
        )
        ways_out = {crew.start(role.live()), crew.start(stop.wait_at_once())}
        try:
            await asyncio.wait(ways_out, return_when=asyncio.FIRST_COMPLETED)
        finally:
            role.door.leave()
            crew.dismiss()


class _Crew:
    """The tasks of one process: a failure of any ends all (TaskGroup), and so does the end of the process."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def dismiss(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()


class _Role:
    """The parts of one role process, and the order in which they come and go."""

    def __init__(
        self,
        spec: RoleSpec,
        bus: Bus,
        workers: Workers,
        *,
        public_key: bytes,
        instance: str,
        stop: StopSignal,
        heartbeat_s: float,
        patience: Patience,
        metrics: Metrics,
        now_us: Callable[[], int],
        crew: _Crew,
    ) -> None:
        self._spec = spec
        self._bus = bus
        self._instance = instance
        self._stop = stop
        self._patience = patience
        self._crew = crew
        self._table = AttemptTable()
        sender = Sender(role=spec.role, instance=instance, version=VERSION)
        answers = Answers(bus, sender, metrics, process_id=clock.new_id(), now_us=now_us)
        self._taking = Taking(
            spec,
            answers,
            self._table,
            workers,
            public_key=public_key,
            metrics=metrics,
            patience=patience,
            spawn=crew.start,
            now_us=now_us,
        )
        self.door = self._taking.door
        self._rollcall = RollCall(spec, answers, self._table, state=self._state, period_s=heartbeat_s)
        self._orders = Orders(bus, self._table, self.door, stop, self._rollcall.want_announcement, crew.start)
        metrics.slots.labels(spec.pool).set(spec.slots)
        metrics.slots_busy.labels(spec.pool).set_function(lambda: self.door.busy)
        metrics.handoffs_waiting.labels(spec.pool).set_function(lambda: self._table.reporting)

    async def live(self) -> None:
        """From the announcement to the goodbye."""
        arrival = self._crew.start(self._arrive())
        await self._stop.wait_draining()
        arrival.cancel()
        await asyncio.wait({arrival})
        await self._leave()

    async def _arrive(self) -> None:
        pool = self._spec.pool
        await _persistently(lambda: self._bus.declare_pool(pool))
        await _persistently(lambda: self._bus.consume_control(pool, self._instance, self._orders.take))
        await self._rollcall.announce()
        self._bus.add_reconnect_listener(self._taking.note_reconnect)
        self._bus.add_reconnect_listener(self._rollcall.want_announcement)
        self._crew.start(self._rollcall.keep_beating())
        self._crew.start(self._rollcall.keep_announcing())
        self._crew.start(self.door.keep())
        self.door.open("starting")

    async def _leave(self) -> None:
        log.info(
            "Leaving: %s; %d attempts to finish.", self._stop.reason, len(self._table), action="role_draining"
        )
        await self.door.shut_now("draining")
        await self._rollcall.beat()
        if not await _within(self._patience.drain_s, self._table.wait_empty()):
            failure = Failure(
                code="worker_left",
                message=f"The process left ({self._stop.reason}) and the work did not end within {self._patience.drain_s:g} s.",
                suggestion="It runs again elsewhere.",
            )
            for attempt in self._table:
                attempt.end_with(Stop(Outcome.COULD_NOT_RUN, failure))
            await _within(self._patience.farewell_s, self._table.wait_empty())
        if len(self._table):
            log.error(
                "Left with %d attempts whose end nobody knows.", len(self._table), action="handoffs_lost"
            )
        if await _within(self._patience.farewell_s, self._rollcall.goodbye(self._stop.reason)):
            log.info("Said goodbye.", action="role_left")

    def _state(self) -> RoleState:
        if self._stop.is_draining:
            return RoleState.DRAINING
        return RoleState.RESTING if self._orders.is_resting else RoleState.READY


async def _persistently(step: Callable[[], Awaitable[object]]) -> None:
    """Make a step of the start, again and again while the broker is away. A mismatch of the topology is fatal."""
    pause_s = FIRST_RETRY_S
    while True:
        try:
            await step()
        except TopologyMismatchError:
            raise
        except RolecallError as error:
            log.warning("The start waits for the broker.", action="start_retried", error=str(error))
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_RETRY_S)
        else:
            return


async def _within(seconds: float, work: Coroutine[Any, Any, None]) -> bool:
    """Await the work for so long at most; True if it ended by itself."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    return True

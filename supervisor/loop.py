"""The supervisor's loop: read a group of messages → decide → one transaction → publish → acknowledge.

A crash at any line is repaired by redelivery (what was not written), the outbox (what was written and not sent) and the
receivers' memory of message ids (what was sent twice).
"""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import structlog

from bus.api import Bus, Consumer, Delivery
from bus.metrics import Metrics
from bus.topology import Topology
from schemas.clock import now_us
from schemas.contracts import ContractRegistry
from supervisor.desk import Desk, Work
from supervisor.effects import Effects
from supervisor.fleet import Fleet
from supervisor.hub_work import HubWork
from supervisor.intake import Fact, Intake
from supervisor.journal.journal import Journal, JournalUnavailableError
from supervisor.minting import Effect, Mint, Posting, reread
from supervisor.relay import Batch, Relay
from supervisor.roll_call import RollCall
from supervisor.saga.messages import Tick
from supervisor.sorting import Item, Sorting, ids_of, tasks_of
from supervisor.speaking import Voice

# Messages in one transaction at most, and unsettled at once: enough to fill the disk's write, few enough to stay quick.
GROUP_AT_MOST = 256
PREFETCH = 512
TICK_S = 1.0
FEED_S = 0.2
JOURNAL_RETRY_S = 2.0
# How long the last messages of a supervisor that stops may take.
DRAIN_S = 10.0

T = TypeVar("T")


class Supervisor:
    """One supervisor process: journal, saga, roll call, hub."""

    def __init__(
        self,
        *,
        bus: Bus,
        journal: Journal,
        hub: HubWork,
        mint: Mint,
        epoch: int,
        metrics: Metrics | None = None,
    ) -> None:
        self._bus = bus
        self._journal = journal
        self._hub = hub
        self._mint = mint
        self._metrics = metrics or Metrics()
        self._topology = Topology(bus.environment)
        self.registry = ContractRegistry.builtin()
        self.fleet = Fleet(self.registry)
        self._desk = Desk(mint, self.fleet)
        self._incoming: asyncio.Queue[Item | None] = asyncio.Queue()
        self._relay = Relay(bus, self._sent)
        self._effects = Effects(hub, self._incoming.put_nowait)
        self._voice = Voice(bus, mint)
        self._roll_call = RollCall(
            bus=bus,
            fleet=self.fleet,
            voice=self._voice,
            metrics=self._metrics,
            epoch=epoch,
            report=self._incoming.put_nowait,
        )
        self._sorting = Sorting(
            topology=self._topology,
            desk=self._desk,
            intake=Intake(hub, self.registry, self.fleet, self._desk.state_of),
            fleet=self.fleet,
            roll_call=self._roll_call,
            metrics=self._metrics,
            put=self._incoming.put_nowait,
        )
        self._confirmed: list[dict[str, object]] = []
        self._dirty_tasks: set[str] = set()
        self._database = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._log = structlog.get_logger("supervisor")

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; then finish the group at hand, send what was decided, and leave."""
        await self._resume()
        self._bus.add_reconnect_listener(self._roll_call.reconnected)
        async with asyncio.TaskGroup() as tasks:
            background = [tasks.create_task(self._relay.run()), tasks.create_task(self._groups())]
            consumers = await self._subscribe()
            background += [tasks.create_task(self._ticks()), tasks.create_task(self._feed())]
            await stop.wait()
            for consumer in consumers:
                await consumer.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_S):
                    await self._incoming.join()
                    await self._relay.drained()
            self._sorting.close()
            for task in background:
                task.cancel()
        await self._effects.close()
        await self._hub.close()
        await self._voice.close()
        await self._in_database(self._write_sent)
        self._database.shutdown()

    # ---- start ---------------------------------------------------------------------------------------------------

    async def _resume(self) -> None:
        """Take up what an earlier supervisor left: live tasks, their leases, and what the outbox still holds."""
        self._roll_call.resume(await self._in_database(self._journal.present))
        replayed = await self._in_database(self._journal.unfinished)
        self._desk.resume(replayed)
        unsent = await self._in_database(self._journal.unsent)
        if replayed.states or unsent:
            taken = f"{len(replayed.states)} tasks and {len(unsent)} unsent messages"
            self._log.info(f"Taking up {taken}.", action="journal_resumed")
        minted = [reread(row) for row in unsent]
        for one in minted:
            if isinstance(one, Effect):
                self._effects.start(one)
        self._relay.hand_over(Batch([one for one in minted if isinstance(one, Posting)]))

    async def _subscribe(self) -> list[Consumer]:
        async def read(delivery: Delivery) -> None:
            self._incoming.put_nowait(delivery)

        consume = self._bus.consume
        return [
            await consume(self._topology.supervisor, read, prefetch=PREFETCH),
            await consume(self._topology.heartbeat, self._roll_call.heartbeat, prefetch=PREFETCH),
            await consume(self._topology.dead, read, prefetch=PREFETCH),
            await consume(self._topology.unroutable, read, prefetch=PREFETCH),
        ]

    # ---- groups --------------------------------------------------------------------------------------------------

    async def _groups(self) -> None:
        while True:
            taken = [await self._incoming.get()]
            while len(taken) < GROUP_AT_MOST and not self._incoming.empty():
                taken.append(self._incoming.get_nowait())
            try:
                await self._group([item for item in taken if item is not None])
            finally:
                for _ in taken:
                    self._incoming.task_done()

    async def _group(self, items: list[Item]) -> None:
        at = now_us()
        known = await self._known(ids_of(items))
        await self._bring_in(tasks_of(items))
        work = Work()
        for item in items:
            self._sorting.take(work, item, known, at)
        self._desk.dispatch(work, at)
        self._desk.picture(work, at)
        work.group.workers |= self._roll_call.rows()
        work.group.sent += self._take_confirmed()
        await self._write(work)
        self._relay.hand_over(Batch(work.postings, work.deliveries))
        for effect in work.effects:
            self._effects.start(effect)
        self._dirty_tasks |= work.changed

    async def _known(self, ids: list[str]) -> set[str]:
        """Those ids that were written before. Asked from the loop's own thread: a few keys in a file that is read
        without waiting for its writer take less time than handing the question to another thread.
        """
        while ids:
            try:
                return set(self._journal.known(ids))
            except JournalUnavailableError as error:
                await self._journal_is_away(error)
        return set()

    async def _bring_in(self, tasks: set[str]) -> None:
        """Take up tasks that ended a while ago: they still answer, and must never begin again."""
        known = self._desk.states.keys() | self._desk.faults.keys()
        unknown = sorted(tasks - known)
        if unknown:
            self._desk.resume(await self._in_database(lambda: self._journal.load(unknown)))

    # ---- time ----------------------------------------------------------------------------------------------------

    async def _ticks(self) -> None:
        while True:
            at = now_us()
            steady_since = self._roll_call.tick(at)
            live = self.fleet.live_pools()
            for state in self._desk.live():
                self._incoming.put_nowait(Fact(state.task, Tick(at, live, steady_since)))
            if self._incoming.empty() and (self._confirmed or self._roll_call.has_rows):
                self._incoming.put_nowait(None)
            await asyncio.sleep(TICK_S)

    async def _feed(self) -> None:
        while True:
            await asyncio.sleep(FEED_S)
            dirty, self._dirty_tasks = self._dirty_tasks, set()
            for task in sorted(dirty):
                state = self._desk.state_of(task)
                if state is not None:
                    self._voice.progress(state, now_us())

    # ---- writing -------------------------------------------------------------------------------------------------

    def _sent(self, message_id: str, note: str) -> None:
        self._confirmed.append({"message_id": message_id, "at": now_us(), "note": note})

    def _take_confirmed(self) -> list[dict[str, object]]:
        confirmed, self._confirmed = self._confirmed, []
        return confirmed

    async def _write(self, work: Work) -> None:
        """Write the group; while the journal cannot be written no further message is taken, and nothing is lost."""
        while True:
            try:
                await self._in_database(lambda: self._journal.write(work.group))
            except JournalUnavailableError as error:
                await self._journal_is_away(error)
            else:
                return

    async def _journal_is_away(self, error: JournalUnavailableError) -> None:
        self._log.error(str(error), action="journal_unavailable")
        await asyncio.sleep(JOURNAL_RETRY_S)

    def _write_sent(self) -> None:
        work = Work()
        work.group.sent += self._take_confirmed()
        with contextlib.suppress(JournalUnavailableError):
            self._journal.write(work.group)

    async def _in_database(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._database, work)

"""Sorting: what each delivery is and where it goes: the roll call, a task, or the dead letters.

What needs a look into the hub is looked up beside the loop and comes back as a fact. Whatever a task is told while its
submission is looked up waits for it, so that a cancel that follows at once is not lost. Every delivery ends up in the
work, to be settled once the work is written.
"""

import asyncio
from collections.abc import Callable, Iterable

import structlog
from pydantic import BaseModel

from bus.api import Delivery
from bus.metrics import Metrics
from bus.topology import Topology
from schemas.envelope import Envelope
from schemas.messages import ActionAccepted, ActionHandoff, TaskSubmitted
from supervisor.desk import Desk, Work
from supervisor.fleet import Fleet
from supervisor.intake import Fact, Intake, unreadable_handoff
from supervisor.parked import dead_row
from supervisor.roll_call import RollCall
from supervisor.saga.messages import HandOff, Submit

Item = Delivery | Fact
# Kinds that change a task and are kept in the inbox.
RECORDED = frozenset(
    {"task.submitted", "task.cancel_requested", "task.delivered", "action.accepted", "action.handoff"}
)


class Sorting:
    """Takes items one by one into a piece of work. `put` brings facts back that were looked up."""

    def __init__(
        self,
        *,
        topology: Topology,
        desk: Desk,
        intake: Intake,
        fleet: Fleet,
        roll_call: RollCall,
        metrics: Metrics,
        put: Callable[[Item], None],
    ) -> None:
        self._topology = topology
        self._desk = desk
        self._intake = intake
        self._fleet = fleet
        self._roll_call = roll_call
        self._metrics = metrics
        self._put = put
        self._lookups: set[asyncio.Task[None]] = set()
        self._behind: dict[str, list[Delivery]] = {}
        self._log = structlog.get_logger("supervisor")

    def take(self, work: Work, item: Item, known: set[str], at: int) -> None:
        """Take an item in. `known` are the messages that were taken before; it grows."""
        try:
            self._take(work, item, known, at)
        except Exception as error:  # nothing that comes in may stop the consumer
            self._log.exception("A message could not be worked on.", action="message_failed")
            delivery = item if isinstance(item, Delivery) else item.delivery
            if delivery is not None:
                self._set_aside(work, delivery, f"the supervisor failed on it: {error!r}", at)

    def close(self) -> None:
        """Stop looking things up; what was not told comes again."""
        for task in self._lookups:
            task.cancel()

    def _take(self, work: Work, item: Item, known: set[str], at: int) -> None:
        if isinstance(item, Fact):
            self._fact(work, item, known, at)
            return
        if item.queue == self._topology.dead:
            work.group.dead.append(dead_row(item, at, environment=self._topology.environment))
            self._metrics.dead_letters.labels(reason="parked").inc()
            work.deliveries.append(item)
            return
        body, envelope = item.body, item.envelope
        if item.fault or body is None or envelope is None:
            self._set_aside(work, item, item.fault or "it does not decode", at)
        elif envelope.kind not in RECORDED:
            self._for_the_fleet(work, item, envelope, body, at)
        elif envelope.correlation_id in self._desk.faults:
            fault = self._desk.faults[envelope.correlation_id]
            self._set_aside(work, item, f"its task's record makes no state: {fault}", at)
        elif envelope.correlation_id in self._behind:
            self._behind[envelope.correlation_id].append(item)
        elif envelope.message_id in known:
            work.deliveries.append(item)
        else:
            known.add(envelope.message_id)
            self._for_a_task(work, item, envelope, body, at)

    def _for_the_fleet(
        self, work: Work, delivery: Delivery, envelope: Envelope, body: BaseModel, at: int
    ) -> None:
        if self._roll_call.takes(envelope, body, at):
            work.deliveries.append(delivery)
            return
        lost = delivery.queue == self._topology.unroutable
        reason = "no queue takes it" if lost else f"{envelope.kind} is not for the supervisor"
        self._set_aside(work, delivery, reason, at)

    def _for_a_task(
        self, work: Work, delivery: Delivery, envelope: Envelope, body: BaseModel, at: int
    ) -> None:
        if isinstance(body, ActionAccepted):
            self._fleet.heard(envelope.sender.instance)
        fact = self._intake.at_once(delivery, envelope, body, at)
        if fact is not None:
            self._desk.take(work, fact, at)
            return
        if isinstance(body, TaskSubmitted):
            self._behind[envelope.correlation_id] = []
        self._note_handing_off(envelope, body)
        task = asyncio.create_task(self._look_up(delivery, envelope, body, at))
        self._lookups.add(task)
        task.add_done_callback(self._lookups.discard)

    async def _look_up(self, delivery: Delivery, envelope: Envelope, body: BaseModel, at: int) -> None:
        try:
            fact = await self._intake.looked_up(delivery, envelope, body, at)
        except Exception as error:  # whatever it was, the task has to hear of it
            self._log.exception(
                "A message could not be checked.", action="lookup_failed", task=envelope.correlation_id
            )
            fact = self._intake.not_looked_up(delivery, envelope, body, at, str(error))
        self._put(fact)

    def _note_handing_off(self, envelope: Envelope, body: BaseModel) -> None:
        """From here on its holder may fall silent: it has said what there is to say."""
        if not isinstance(body, ActionHandoff):
            return
        handoff, instance = body.handoff, envelope.sender.instance
        if self._intake.cites_its_nonce(envelope.correlation_id, handoff):
            self._fleet.leases.set_handing_off(handoff.action_id, handoff.attempt, instance, is_so=True)

    def _fact(self, work: Work, fact: Fact, known: set[str], at: int) -> None:
        message = fact.message
        if isinstance(message, HandOff):
            handoff, instance = message.handoff, message.instance
            self._fleet.leases.set_handing_off(handoff.action_id, handoff.attempt, instance, is_so=False)
        behind = self._behind.pop(fact.task, ()) if isinstance(message, Submit) else ()
        try:
            if fact.delivery is not None and ids_of([fact])[0] in known:
                work.deliveries.append(fact.delivery)
            else:
                known.update(ids_of([fact]))
                self._desk.take(work, fact, at)
        finally:
            for delivery in behind:
                self.take(work, delivery, known, at)

    def _set_aside(self, work: Work, delivery: Delivery, fault: str, at: int) -> None:
        """Keep a message with the reason; one that is a handoff still ends its attempt."""
        self._metrics.dead_letters.labels(reason="unreadable").inc()
        self._log.warning("A message was parked.", action="message_parked", reason=fault)
        fact = unreadable_handoff(delivery, at, fault)
        if fact is not None:
            try:
                self._desk.take(work, fact, at)
            except Exception:
                self._log.exception("Nor can its attempt be ended.", action="message_failed")
        work.group.dead.append(dead_row(delivery, at, environment=self._topology.environment, reason=fault))
        if delivery not in work.deliveries:
            work.deliveries.append(delivery)


def ids_of(items: Iterable[Item]) -> list[str]:
    """The ids of those messages that are kept in the inbox."""
    deliveries = (item.delivery if isinstance(item, Fact) else item for item in items)
    return [
        one.envelope.message_id
        for one in deliveries
        if one and one.envelope and one.envelope.kind in RECORDED
    ]


def tasks_of(items: Iterable[Item]) -> set[str]:
    """The tasks that these items are about."""
    facts = {item.task for item in items if isinstance(item, Fact)}
    said = (item.envelope for item in items if isinstance(item, Delivery))
    return facts | {one.correlation_id for one in said if one is not None and one.kind in RECORDED}

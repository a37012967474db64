"""The desk: where facts become decisions. Holds the state of live tasks; what follows goes into one `Work`.

It does no I/O: the loop writes the work's rows in one transaction and then hands out its messages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from bus.api import Delivery
from schemas.envelope import Envelope
from schemas.words import Lane
from supervisor.dispatching import offers
from supervisor.fleet import Fleet
from supervisor.intake import Fact
from supervisor.journal.journal import Group
from supervisor.leases import Lease
from supervisor.minting import Effect, Mint, Posting
from supervisor.projecting import record, task_row
from supervisor.saga.decide import decide, pools_with_work
from supervisor.saga.events import Event
from supervisor.saga.messages import Message, Slots
from supervisor.saga.state import TaskState
from supervisor.telling import tell

# Ended tasks whose state is kept at hand, to answer late messages without a look at the journal.
ENDED_AT_HAND = 50


@dataclass(slots=True)
class Work:
    """What one group of messages led to."""

    group: Group = field(default_factory=Group)
    postings: list[Posting] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)


class Desk:
    """Decides about tasks."""

    def __init__(self, mint: Mint, fleet: Fleet) -> None:
        self._mint = mint
        self._fleet = fleet
        self.states: dict[str, TaskState] = {}
        self._traces: dict[str, str | None] = {}
        self._turn = 0
        self._log = structlog.get_logger("supervisor")

    def resume(self, states: Mapping[str, TaskState]) -> None:
        """Take up live tasks from the journal, with the leases that their actions had."""
        self.states.update(states)
        for state in states.values():
            for action in state.actions.values():
                for attempt, instance in action.holders:
                    held = Lease(state.task, action.spec.action_id, attempt, instance, accepted_at=0)
                    self._fleet.leases.add(held)

    def state_of(self, task: str) -> TaskState | None:
        """The task's state, if it is live here (or ended a short while ago)."""
        return self.states.get(task)

    def live(self) -> list[TaskState]:
        """Tasks that have not ended."""
        return [state for state in self.states.values() if not state.status.is_final]

    def take(self, work: Work, fact: Fact, at: int) -> None:
        """Decide about one fact and add what follows."""
        envelope = fact.delivery.envelope if fact.delivery else None
        if envelope is not None:
            work.group.inbox.append(inbox_row(envelope, fact.delivery, at))
            if envelope.kind == "task.submitted":
                self._traces[fact.task] = envelope.traceparent
        if fact.delivery is not None:
            work.deliveries.append(fact.delivery)
        if fact.sent is not None:
            work.group.sent.append({"message_id": fact.sent, "at": at, "note": ""})
        self._decide(work, fact.task, fact.message, envelope, at)

    def dispatch(self, work: Work, at: int) -> None:
        """Give the free slots of live processes to the tasks that wait for them."""
        live = self.live()
        pools = {pool for state in live for pool in pools_with_work(state)}
        if not pools:
            return
        self._turn += 1
        slots = {pool: self._fleet.slots(pool) for pool in pools}
        for offer in offers(live, slots, self._turn):
            self._decide(work, offer.task, Slots(at, offer.pool, offer.count), None, at)

    def picture(self, work: Work, at: int) -> None:
        """Add how the tasks that changed look now: once a group, however many decisions it held."""
        for task in work.changed:
            row = task_row(self.states[task], at)
            if row is not None:
                work.group.tasks[task] = row
        self._forget_old()

    def _decide(self, work: Work, task: str, message: Message, envelope: Envelope | None, at: int) -> None:
        state = self.states.get(task) or TaskState(task)
        decision = decide(state, message)
        if not decision.events and not decision.commands:
            return
        self.states[task] = decision.state
        cause = envelope.message_id if envelope else None
        sent_at = envelope.created_at if envelope else at
        record(
            work.group,
            self._fleet.leases,
            decision.state,
            decision.events,
            message_id=cause,
            sent_at=sent_at,
        )
        lane = decision.state.request.lane if decision.state.request else Lane.INTERACTIVE
        for command in decision.commands:
            minted, row = self._mint.command(
                task, command, cause=cause, lane=lane, traceparent=self._traces.get(task), at=at
            )
            work.group.outbox.append(row)
            if isinstance(minted, Effect):
                work.effects.append(minted)
            else:
                work.postings.append(minted)
        work.changed.add(task)
        self._tell(decision.state, decision.events)

    def _tell(self, state: TaskState, events: tuple[Event, ...]) -> None:
        for event in events:
            told = tell(state, event)
            if told is not None:
                log = self._log.warning if told.warns else self._log.info
                log(told.text, action=told.action, task=state.task)

    def _forget_old(self) -> None:
        ended = [task for task, state in self.states.items() if state.status.is_final]
        for task in ended[:-ENDED_AT_HAND]:
            del self.states[task]
            self._traces.pop(task, None)


def inbox_row(envelope: Envelope, delivery: Delivery | None, at: int, note: str = "") -> dict[str, object]:
    """An envelope as the inbox keeps it."""
    return {
        "message_id": envelope.message_id,
        "task": envelope.correlation_id,
        "kind": envelope.kind,
        "sender_role": envelope.sender.role,
        "sender_instance": envelope.sender.instance,
        "causation_id": envelope.causation_id,
        "created_at": envelope.created_at,
        "received_at": delivery.received_at if delivery else at,
        "note": note,
        "raw": delivery.raw if delivery else b"",
    }

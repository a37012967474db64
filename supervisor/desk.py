"""The desk: where facts become decisions. Holds the state of live tasks; what follows goes into one `Work`.

It does no I/O: the loop writes the work's rows in one transaction and then hands out its messages.
"""

from collections import Counter
from dataclasses import dataclass, field

import structlog

from bus.api import Delivery
from schemas.envelope import Envelope
from schemas.errors import ContractError
from schemas.words import Lane
from supervisor.dispatching import offers
from supervisor.fleet import Fleet
from supervisor.intake import Fact
from supervisor.journal.journal import Group, Replayed, Row
from supervisor.leases import Lease
from supervisor.minting import Effect, Mint, Minted, Posting
from supervisor.projecting import record, task_row
from supervisor.saga.commands import Dispatch
from supervisor.saga.decide import Decision, decide, pools_with_work
from supervisor.saga.events import Event
from supervisor.saga.messages import CannotSend, Message, Slots
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
        self.faults: dict[str, str] = {}
        self._traces: dict[str, str | None] = {}
        self._turns: Counter[str] = Counter()
        self._log = structlog.get_logger("supervisor")

    def resume(self, replayed: Replayed) -> None:
        """Take up tasks from the journal, with the leases that their actions had."""
        self.states.update(replayed.states)
        self.faults.update(replayed.faults)
        for task, fault in replayed.faults.items():
            self._log.error(
                "A task's record makes no state; it is left alone.",
                action="replay_failed",
                task=task,
                reason=fault,
            )
        for state in replayed.states.values():
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
        if envelope is not None and envelope.kind == "task.submitted":
            self._traces.setdefault(fact.task, envelope.traceparent)
        self._decide(work, fact.task, fact.message, envelope, at)
        if envelope is not None:
            work.group.inbox.append(inbox_row(envelope, fact.delivery, at))
        if fact.delivery is not None:
            work.deliveries.append(fact.delivery)
        if fact.sent is not None:
            work.group.sent.append({"message_id": fact.sent, "at": at, "note": ""})

    def dispatch(self, work: Work, at: int) -> None:
        """Give the free slots of live processes to the tasks that wait for them."""
        live = self.live()
        pools = {pool for state in live for pool in pools_with_work(state)}
        if not pools:
            return
        slots = {pool: self._fleet.slots(pool) for pool in pools}
        made = offers(live, slots, self._turns)
        self._turns.update({offer.pool for offer in made})
        for offer in made:
            try:
                self._decide(work, offer.task, Slots(at, offer.pool, offer.count), None, at)
            except Exception:  # a defect in one task must not stop the others
                self._log.exception(
                    "Work could not be dispatched.", action="dispatch_failed", task=offer.task
                )

    def picture(self, work: Work, at: int) -> None:
        """Add how the tasks that changed look now: once a group, however many decisions it held."""
        for task in work.changed:
            row = task_row(self.states[task], at)
            if row is not None:
                work.group.tasks[task] = row
        self._forget_old()

    def _decide(self, work: Work, task: str, message: Message, envelope: Envelope | None, at: int) -> None:
        """Decide, and only if all that follows could be made, keep it."""
        state = self.states.get(task) or TaskState(task)
        decision = decide(state, message)
        if not decision.events and not decision.commands:
            return
        cause = envelope.message_id if envelope else None
        minted, unsendable = self._minted(task, decision, cause=cause, at=at)
        self.states[task] = decision.state
        sent_at = envelope.created_at if envelope else at
        record(
            work.group,
            self._fleet.leases,
            decision.state,
            decision.events,
            message_id=cause,
            sent_at=sent_at,
        )
        for one, row in minted:
            work.group.outbox.append(row)
            if isinstance(one, Effect):
                work.effects.append(one)
            else:
                work.postings.append(one)
        work.changed.add(task)
        self._tell(decision.state, decision.events)
        for refusal in unsendable:
            self._decide(work, task, refusal, None, at)

    def _minted(
        self, task: str, decision: Decision, *, cause: str | None, at: int
    ) -> tuple[list[tuple[Minted, Row]], list[CannotSend]]:
        """The messages of a decision, and those attempts whose message no bus would take."""
        lane = decision.state.request.lane if decision.state.request else Lane.INTERACTIVE
        trace = self._traces.get(task)
        minted: list[tuple[Minted, Row]] = []
        unsendable: list[CannotSend] = []
        for command in decision.commands:
            try:
                minted.append(
                    self._mint.command(task, command, cause=cause, lane=lane, traceparent=trace, at=at)
                )
            except ContractError as error:
                if not isinstance(command, Dispatch):
                    raise
                unsendable.append(CannotSend(at, command.spec.action_id, str(error)))
        return minted, unsendable

    def _tell(self, state: TaskState, events: tuple[Event, ...]) -> None:
        for event in events:
            told = tell(state, event)
            if told is not None:
                log = self._log.warning if told.warns else self._log.info
                log(told.text, action=told.action, task=state.task)

    def _forget_old(self) -> None:
        """Let go of all but the last ended tasks; the journal has them."""
        ended = [task for task, state in self.states.items() if state.status.is_final]
        for task in ended[:-ENDED_AT_HAND]:
            del self.states[task]
            self._traces.pop(task, None)


def inbox_row(envelope: Envelope, delivery: Delivery | None, at: int, note: str = "") -> Row:
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

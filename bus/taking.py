"""Accept, then lease: what happens to a delivery of the pool's queue, from its arrival to its confirmed handoff.

    admit → publish action.accepted (confirmed) → make room → acknowledge → work → publish action.handoff (confirmed)

No delivery is held while an action runs, so neither a broker's timeout nor a lost connection repeats or cancels work.
What may be repeated is answered again and not run twice. Every delivery is settled here, whatever happens to it.
"""

import asyncio
from collections.abc import Callable
from typing import assert_never

import structlog

from bus.admission import Admit, Park, Refuse, admit
from bus.answers import Answers, ids_of
from bus.api import Delivery, Outgoing, Settlement, TopologyMismatchError
from bus.attempts import Attempt, AttemptTable, Stage, Stop
from bus.door import Door, Spawn, Ticket
from bus.metrics import Metrics
from bus.performing import Patience, Performance, ended, perform
from bus.served import RoleSpec, serve_contracts
from bus.topology import Topology
from bus.workers import Workers
from schemas.action import Action
from schemas.envelope import Envelope
from schemas.errors import ContractError, RolecallError
from schemas.handoff import Failure, Handoff
from schemas.messages import ActionAccepted, ActionHandoff
from schemas.words import Outcome

log = structlog.get_logger()

# Handoffs that wait for the broker are kept however long it takes; with this many waiting no new work is taken.
MOST_UNREPORTED = 256


class Taking:
    """Takes deliveries of one pool's queue through to their handoffs."""

    def __init__(
        self,
        spec: RoleSpec,
        answers: Answers,
        table: AttemptTable,
        workers: Workers,
        *,
        public_key: bytes,
        metrics: Metrics,
        patience: Patience,
        spawn: Spawn,
        now_us: Callable[[], int],
    ) -> None:
        self._bus = answers.bus
        self._pool = spec.pool
        self._contracts = serve_contracts(spec)
        self._public_key = public_key
        self._answers = answers
        self._table = table
        self._workers = workers
        self._metrics = metrics
        self._patience = patience
        self._spawn = spawn
        self._now_us = now_us
        self._connection = 0
        self.door = Door(
            answers.bus,
            Topology(answers.bus.environment).work(spec.pool),
            spec.slots,
            on_ticket=self.take,
            spawn=spawn,
        )

    async def note_reconnect(self) -> None:
        """Deliveries of the connection before are the broker's again."""
        self._connection += 1

    async def take(self, ticket: Ticket) -> None:
        """Settle one delivery, and start its work if it is some."""
        try:
            await self._take(ticket)
        except TopologyMismatchError:
            raise
        except Exception as error:
            # A message that breaks us would break the next worker too: aside with it, loudly, and go on.
            log.exception(
                "A delivery could not be handled and is parked.", action="delivery_failed", pool=self._pool
            )
            await self._park(
                ticket, f"Handling it failed with {type(error).__name__}: {error}", kind="internal"
            )

    async def _take(self, ticket: Ticket) -> None:
        decision = admit(
            ticket.delivery,
            contracts=self._contracts,
            public_key=self._public_key,
            environment=self._bus.environment,
            pool=self._pool,
            now_us=self._now_us(),
        )
        match decision:
            case Park(reason):
                await self._park(ticket, reason, kind="unusable" if ticket.delivery.fault else "not_granted")
            case Refuse():
                await self._refuse(ticket, decision)
            case Admit():
                await self._admit(ticket, decision)
            case _:
                assert_never(decision)

    async def _park(self, ticket: Ticket, reason: str, *, kind: str) -> None:
        known = ids_of(ticket.delivery.envelope) if ticket.delivery.envelope else {}
        log.warning(
            "A message in the work queue is parked: %s",
            reason,
            action="work_parked",
            pool=self._pool,
            **known,
        )
        self._metrics.dead_letters.labels(kind).inc()
        try:
            await self.door.settle(ticket, Settlement.PARK, reason)
        except RolecallError as error:
            log.warning(
                "It could not be parked and comes again.", action="park_failed", error=str(error), **known
            )
            await self.door.settle(ticket, Settlement.RETRY)

    async def _refuse(self, ticket: Ticket, refusal: Refuse) -> None:
        """Only a holder's handoff is believed, so the attempt is accepted before it is answered."""
        action, cause = refusal.action, refusal.envelope
        handoff = ended(action, Stop(refusal.outcome, refusal.failure))
        log.warning(
            "Not run: %s",
            refusal.failure.message,
            action="work_refused",
            code=refusal.failure.code,
            **_ids(action, cause),
        )
        self._metrics.attempts.labels(action.contract, handoff.outcome).inc()
        await self._answer_and_settle(ticket, action, cause, handoff)

    async def _admit(self, ticket: Ticket, admitted: Admit) -> None:
        action, cause = admitted.action, admitted.envelope
        while (held := self._table.find(action)) is not None and held.stage is Stage.TAKEN:
            await held.decided.wait()
        handoff = held.handoff if held is not None else self._table.ended(action)
        if held is not None or handoff is not None:
            log.info("Came again, and is not run twice.", action="work_repeated", **_ids(action, cause))
            await self._answer_and_settle(ticket, action, cause, handoff)
            return
        attempt = Attempt(action, admitted.served, cause, ticket.delivery.received_at)
        self._table.add(attempt)
        await self._accept(ticket, attempt)

    async def _answer_and_settle(
        self, ticket: Ticket, action: Action, cause: Envelope, handoff: Handoff | None
    ) -> None:
        still_ours = self._while_ours()
        told = await self._answers.publish_surely(
            self._accepted(action, cause, ticket.delivery), while_=still_ours
        )
        if told and handoff is not None:
            told = await self._publish_handoff(cause, action, handoff, while_=still_ours)
        await self.door.settle(ticket, Settlement.ACK if told else Settlement.RETRY)

    async def _accept(self, ticket: Ticket, attempt: Attempt) -> None:
        slot = await self._slot_and_word(ticket, attempt)
        if slot is None:
            self._table.forget(attempt)
            await self.door.settle(ticket, Settlement.RETRY)
            return
        self._table.accept(attempt, self._now_us())
        log.info("Took the work.", action="work_accepted", slot=slot, **_ids(attempt.action, attempt.cause))
        self._spawn(self._work(attempt, slot))
        await self.door.acknowledge_taken(ticket)

    async def _slot_and_word(self, ticket: Ticket, attempt: Attempt) -> int | None:
        """The slot to work in, once the acceptance is confirmed and the door lets in no more than fits."""
        slot = await self.door.slot_for(ticket)
        if slot is None:
            return None
        accepted = self._accepted(attempt.action, attempt.cause, ticket.delivery)
        # Together: the consumer's cancel costs a round trip, and so does the confirm.
        told, _ = await asyncio.gather(
            self._answers.publish_surely(accepted, while_=self._while_ours()), self.door.make_room(ticket)
        )
        return slot if told else None

    async def _work(self, attempt: Attempt, slot: int) -> None:
        """Perform in the slot, free it, and see the handoff confirmed; order matters only for the last two."""
        action, cause = attempt.action, attempt.cause
        waited_us = self._now_us() - attempt.received_at
        self._metrics.start_seconds.labels(action.contract).observe(max(0, waited_us) / 1e6)
        performance = await perform(attempt, self._workers, slot, self._patience)
        handoff = performance.handoff
        self._table.report(attempt, handoff)
        self._measure(action, handoff)
        if self._table.reporting >= MOST_UNREPORTED:
            self.door.shut("unreported")
        self._spawn(self._free(performance, slot))
        log.info(
            "Ended as %s after %d ms.",
            handoff.outcome,
            handoff.cost.wall_ms,
            action="work_ended",
            outcome=str(handoff.outcome),
            error=handoff.error.code if handoff.error else None,
            **_ids(action, cause),
        )
        await self._publish_handoff(cause, action, handoff)
        self._table.close(attempt)
        self.door.open("unreported")

    async def _free(self, performance: Performance, slot: int) -> None:
        if performance.straggler is not None:
            log.error(
                "A killed worker does not end; its slot stays closed until it does.",
                action="worker_hangs",
                slot=slot,
            )
            await asyncio.wait({performance.straggler})
        await self.door.release(slot)

    async def _publish_handoff(
        self, cause: Envelope, action: Action, handoff: Handoff, *, while_: Callable[[], bool] = lambda: True
    ) -> bool:
        """Until it is confirmed: no work may be lost between finished and known to be finished."""
        try:
            return await self._answers.publish_surely(self._handoff(cause, handoff), while_=while_)
        except ContractError as error:
            refused = error
        log.error(
            "A handoff cannot be sent and is replaced: %s",
            refused,
            action="handoff_refused",
            **_ids(action, cause),
        )
        failure = Failure(
            code="handoff_refused", message=refused.message, suggestion="Lay what is large into the hub."
        )
        instead = ended(action, Stop(Outcome.FAILED, failure))
        return await self._answers.publish_surely(self._handoff(cause, instead), while_=while_)

    def _accepted(self, action: Action, cause: Envelope, delivery: Delivery) -> Outgoing:
        waited_us = max(0, delivery.received_at - cause.created_at)
        self._metrics.queue_wait_seconds.labels(action.contract).observe(waited_us / 1e6)
        body = ActionAccepted(
            action_id=action.action_id,
            attempt=action.attempt,
            nonce=action.nonce,
            waited_ms=waited_us // 1_000,
        )
        return self._answers.reply(cause, "action.accepted", body)

    def _handoff(self, cause: Envelope, handoff: Handoff) -> Outgoing:
        return self._answers.reply(cause, "action.handoff", ActionHandoff(handoff=handoff))

    def _while_ours(self) -> Callable[[], bool]:
        """True while the broker still counts the delivery in hand as ours to settle."""
        taken_on = self._connection
        return lambda: self._bus.is_connected and self._connection == taken_on

    def _measure(self, action: Action, handoff: Handoff) -> None:
        self._metrics.attempts.labels(action.contract, handoff.outcome).inc()
        self._metrics.attempt_seconds.labels(action.contract).observe(handoff.cost.wall_ms / 1e3)
        self._metrics.tokens.labels(action.contract, "in").inc(handoff.cost.tokens_in)
        self._metrics.tokens.labels(action.contract, "out").inc(handoff.cost.tokens_out)
        self._metrics.spend.labels(action.contract).inc(handoff.cost.money)


def _ids(action: Action, cause: Envelope) -> dict[str, object]:
    return {
        "task": action.task,
        "step": action.step,
        "action_id": action.action_id,
        "attempt": action.attempt,
        "contract": action.contract,
        "lane": str(cause.lane),
    }

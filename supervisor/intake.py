"""From a delivery to what the saga is told: who sent it, what it says, and what the commits say about it.

Gathering may wait (for git, for a blob); it never decides. Everything that does not concern one task's saga (roll call,
dead letters) is told apart here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from bus.api import Delivery
from schemas.contracts import ContractRegistry
from schemas.envelope import Envelope
from schemas.errors import RolecallError
from schemas.handoff import Failure, Handoff
from schemas.messages import (
    ActionAccepted,
    ActionHandoff,
    TaskCancelRequested,
    TaskDelivered,
    TaskSubmitted,
)
from schemas.plan import Plan
from schemas.task import TaskRequest
from schemas.validation import Checker, checker, explain
from schemas.words import Outcome
from supervisor.believing import FINISHED, CommitFacts, not_granted, plan_faults, refusals
from supervisor.fleet import Fleet
from supervisor.hub_work import HubWork
from supervisor.resolving import resolve
from supervisor.saga.attempts import nonce_of
from supervisor.saga.messages import Accept, Cancel, Deliver, HandOff, Message, Submit
from supervisor.saga.state import ActionKind, ActionSpec, TaskState


@dataclass(frozen=True, slots=True)
class Fact:
    """Something to tell a task's saga. `delivery` is settled once it is recorded; `sent` names a finished effect."""

    task: str
    message: Message
    delivery: Delivery | None = None
    sent: str | None = None


class Intake:
    """Reads deliveries for the supervisor."""

    def __init__(
        self,
        hub: HubWork,
        registry: ContractRegistry,
        fleet: Fleet,
        state_of: Callable[[str], TaskState | None],
    ) -> None:
        self._hub = hub
        self._registry = registry
        self._fleet = fleet
        self._state_of = state_of
        self._outputs: dict[str, Checker] = {}

    def at_once(self, delivery: Delivery, envelope: Envelope, body: BaseModel, at: int) -> Fact | None:
        """The fact, if nothing has to be looked up for it; None if `looked_up` has to be awaited."""
        task = envelope.correlation_id
        match body:
            case ActionAccepted():
                instance = envelope.sender.instance
                pool = self._fleet.pool_of(instance)
                message: Message = Accept(at, body.action_id, body.attempt, body.nonce, instance, pool)
            case TaskCancelRequested():
                message = Cancel(at, body.reason)
            case TaskDelivered():
                message = Deliver(at, body.branch, body.commit, body.by)
            case ActionHandoff(handoff=handoff) if not self._needs_look(task, handoff):
                instance, spec = envelope.sender.instance, self._spec(task, handoff)
                faults = self._judge(spec, handoff, CommitFacts()) if spec else ()
                message = HandOff(at, handoff, instance, envelope.message_id, refusals=faults)
            case _:
                return None
        return Fact(task, message, delivery)

    async def looked_up(self, delivery: Delivery, envelope: Envelope, body: BaseModel, at: int) -> Fact:
        """The fact of a submission or a handoff, after asking the hub."""
        task = envelope.correlation_id
        match body:
            case TaskSubmitted():
                return Fact(task, await self._submission(body, at), delivery)
            case ActionHandoff(handoff=handoff):
                return Fact(task, await self._handoff(task, handoff, envelope, at), delivery)
            case _:
                raise RolecallError(f"{envelope.kind} is not for the supervisor.")

    def not_looked_up(
        self, delivery: Delivery, envelope: Envelope, body: BaseModel, at: int, reason: str
    ) -> Fact:
        """The fact of a message that could not be looked up: what it asks for is refused."""
        reason = f"the supervisor could not check it: {reason}"
        match body:
            case ActionHandoff(handoff=handoff):
                message: Message = HandOff(
                    at, handoff, envelope.sender.instance, envelope.message_id, refusals=(reason,)
                )
            case _:
                message = Submit(
                    at, body.request if isinstance(body, TaskSubmitted) else None, refused=reason
                )
        return Fact(envelope.correlation_id, message, delivery)

    async def _submission(self, body: TaskSubmitted, at: int) -> Submit:
        try:
            request = body.request or TaskRequest.model_validate_json(
                await self._hub.read(body.request_blob or "")
            )
        except (RolecallError, ValidationError) as error:
            return Submit(at, None, refused=f"the request could not be read: {error}")
        if not await self._hub.has(request.base):
            return Submit(at, request, refused=f"the base commit {request.base[:12]} is not in the hub")
        return resolve(request, self._registry, self._fleet, at)

    def _needs_look(self, task: str, handoff: Handoff) -> bool:
        spec = self._spec(task, handoff)
        if spec is None:
            return False
        spilled = not _JUDGED.isdisjoint(handoff.spilled)
        return handoff.result is not None or spec.kind is ActionKind.PLAN or spilled

    async def _handoff(self, task: str, handoff: Handoff, envelope: Envelope, at: int) -> HandOff:
        spec = self._spec(task, handoff)
        instance, message_id = envelope.sender.instance, envelope.message_id
        if spec is None:
            return HandOff(at, handoff, instance, message_id)
        facts, plan = CommitFacts(), None
        faults: tuple[str, ...] = ()
        try:
            if not _JUDGED.isdisjoint(handoff.spilled):
                handoff = await self._hub.complete(handoff)
            if handoff.outcome is Outcome.DONE and spec.kind is ActionKind.PLAN:
                plan, faults = self._plan(task, spec, handoff)
            if handoff.result is not None:
                allow = self._allow(task)
                facts = await self._hub.check(spec.base, handoff.result, spec.reach, allow)
        except RolecallError as error:
            faults = (str(error),)
        return HandOff(
            at,
            handoff,
            instance,
            message_id,
            refusals=faults or self._judge(spec, handoff, facts),
            not_granted=() if faults else not_granted(facts),
            files=len(facts.paths),
            added=facts.added,
            removed=facts.removed,
            plan=plan,
        )

    def _judge(self, spec: ActionSpec, handoff: Handoff, facts: CommitFacts) -> tuple[str, ...]:
        """The reasons not to believe it: its output's shape first, for the rest relies on it."""
        if handoff.outcome in FINISHED and spec.contract in self._registry:
            document = self._registry.get(spec.contract)
            known = self._outputs.get(spec.contract) or checker(document.output)
            self._outputs[spec.contract] = known
            if not known.accepts(handoff.output):
                return (f"its output does not fit {spec.contract}: {explain(known.schema, handoff.output)}",)
        return refusals(spec, handoff, facts)

    def cites_its_nonce(self, task: str, handoff: Handoff) -> bool:
        """True if the handoff can only come from somebody who was given the attempt."""
        state = self._state_of(task)
        if state is None or handoff.action_id not in state.actions:
            return False
        return handoff.nonce == nonce_of(state.secret, handoff.action_id, handoff.attempt)

    def _plan(self, task: str, spec: ActionSpec, handoff: Handoff) -> tuple[Plan | None, tuple[str, ...]]:
        state = self._state_of(task)
        try:
            plan = Plan.model_validate(handoff.output.get("plan"))
        except ValidationError as error:
            return None, (f"the plan breaks its schema: {error.errors()[0]['msg']}",)
        return plan, plan_faults(state, plan, spec.input["revision"]) if state else ()

    def _spec(self, task: str, handoff: Handoff) -> ActionSpec | None:
        state = self._state_of(task)
        action = state.actions.get(handoff.action_id) if state else None
        return action.spec if action else None

    def _allow(self, task: str) -> tuple[str, ...]:
        state = self._state_of(task)
        return state.asked.allow if state else ()


# Spilled fields that decide what follows; the others are only told.
_JUDGED = frozenset({"output", "findings"})


def unreadable_handoff(delivery: Delivery, at: int, fault: str) -> Fact | None:
    """A handoff that breaks its schema still ends its attempt, if it says which: no step hangs on it."""
    envelope = delivery.envelope
    if envelope is None or envelope.kind != "action.handoff":
        return None
    said = envelope.body.get("handoff")
    if not isinstance(said, dict):
        return None
    try:
        handoff = Handoff(
            action_id=said.get("action_id", ""),
            attempt=said.get("attempt", 0),
            nonce=said.get("nonce", ""),
            outcome=Outcome.COULD_NOT_RUN,
            base=str(said.get("base", "")),
            error=Failure(code="unreadable_handoff", message=f"its handoff cannot be read: {fault}"),
        )
    except ValidationError:
        return None
    instance = envelope.sender.instance
    return Fact(envelope.correlation_id, HandOff(at, handoff, instance, envelope.message_id))

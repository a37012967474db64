"""admit(delivery): may this delivery run here? One pure function, before anything is promised to anybody.

Three answers. *Park*: it is no genuine work for this pool, so nobody is told but the parking place. *Refuse*: it is
genuine, but must not or cannot run here, so its attempt ends with a handoff and no step hangs. *Admit*: it may run.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bus.api import Delivery
from bus.grants import GrantExpiredError, open_granted
from bus.served import Served
from schemas.action import Action
from schemas.envelope import Envelope
from schemas.errors import ContractError
from schemas.handoff import Failure
from schemas.messages import ActionRequested
from schemas.validation import explain
from schemas.words import Outcome


@dataclass(frozen=True, slots=True)
class Park:
    """Not for anyone: set aside with the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Genuine, but not to be run: answered with this outcome and failure."""

    envelope: Envelope
    action: Action
    outcome: Outcome
    failure: Failure


@dataclass(frozen=True, slots=True)
class Admit:
    """Genuine, in time, and fit for its contract."""

    envelope: Envelope
    action: Action
    served: Served


Admission = Park | Refuse | Admit


def admit(
    delivery: Delivery,
    *,
    contracts: Mapping[str, Served],
    public_key: bytes,
    environment: str,
    pool: str,
    now_us: int,
) -> Admission:
    """Decide about one delivery of the pool's queue; `contracts` are those served here, by `name@version`."""
    envelope = delivery.envelope
    if delivery.fault is not None or envelope is None:
        return Park(delivery.fault or "It carries no envelope.")
    if not isinstance(delivery.body, ActionRequested):
        return Park(f"{envelope.kind!r} is no work; only action.requested belongs into a pool's queue.")
    try:
        action = open_granted(delivery.body, public_key, environment=environment, pool=pool, now_us=now_us)
    except GrantExpiredError as error:
        return _told_alike(envelope, error.action) or _expired(envelope, error.action, error.message)
    except ContractError as error:
        return Park(str(error))
    if (foreign := _told_alike(envelope, action)) is not None:
        return foreign
    if envelope.is_expired(now_us):
        return _expired(envelope, action, "The work message outlived its time in the queue.")
    return _fit(envelope, action, contracts)


def _told_alike(envelope: Envelope, action: Action) -> Park | None:
    """The envelope is not signed: what it says must be what the signed action says."""
    if (envelope.correlation_id, envelope.attempt) == (action.task, action.attempt):
        return None
    return Park("The envelope names another task or attempt than the granted action.")


def _expired(envelope: Envelope, action: Action, message: str) -> Refuse:
    failure = Failure(
        code="expired", message=message, suggestion="It is dispatched again while its task lives."
    )
    return Refuse(envelope, action, Outcome.EXPIRED, failure)


def _fit(envelope: Envelope, action: Action, contracts: Mapping[str, Served]) -> Admit | Refuse:
    served = contracts.get(action.contract)
    if served is None:
        failure = Failure(
            code="contract_not_served",
            message=f"{action.contract} is not served here; served are {', '.join(sorted(contracts)) or 'none'}.",
            suggestion="Start a process of this pool that serves it.",
        )
        return Refuse(envelope, action, Outcome.COULD_NOT_RUN, failure)
    contract = served.contract
    # The signature covers the input after coercion, so here it must fit as it is.
    if not served.input.accepts(action.input):
        failure = Failure(
            code="input_refused",
            message=f"The input does not fit {contract.ref}: {explain(contract.input, action.input)}",
            suggestion=f"`rolecall contracts {contract.name}` shows what it accepts.",
        )
        return Refuse(envelope, action, Outcome.COULD_NOT_RUN, failure)
    return Admit(envelope, action, served)

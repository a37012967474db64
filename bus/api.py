"""What a bus is: the interface that RabbitMQ (`bus.amqp`) and memory (`bus.memory`) both keep, under one test suite."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from pydantic import BaseModel

from schemas.envelope import Envelope
from schemas.errors import RolecallError, SettingsError


class Exchange(StrEnum):
    """The exchanges, without the environment's prefix."""

    WORK = "work"
    EVENTS = "events"
    CONTROL = "control"
    HEARTBEAT = "heartbeat"
    FEED = "feed"
    DEAD = "dead"
    UNROUTABLE = "unroutable"

    @property
    def is_reliable(self) -> bool:
        """True if a publish is persistent, confirmed and must find a queue; heartbeat and feed may be lost.

        Control messages must find their queue too, but the receiver may be gone: its answer is a roll call.
        """
        return self not in (Exchange.HEARTBEAT, Exchange.FEED)


class Settlement(StrEnum):
    """How a delivery ends; every delivery ends as one of these, in one place."""

    ACK = "ack"
    """Done with it: the broker forgets it."""
    RETRY = "retry"
    """Not now: the broker hands it out again."""
    PARK = "park"
    """Cannot be used: set aside with its raw bytes and the reason, then forgotten by the queue it came from."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message on its way: where to, under which routing key."""

    exchange: Exchange
    key: str
    envelope: Envelope


@dataclass(slots=True)
class Delivery:
    """One message as it arrived.

    `fault` says why it cannot be used (does not decode, breaks its schema, too large, another environment, a sender
    that is not who it claims); `envelope` may be set even then. `body` is the envelope's body as the model of its kind,
    None where it broke its schema. `exchange` has no environment prefix and is the one that was published to, also
    after a detour over an alternate exchange. `received_at` is microseconds UTC. `headers` are the broker's (see
    `bus.parking` for dead letters). `handle` belongs to the bus.
    """

    envelope: Envelope | None
    raw: bytes
    fault: str | None
    queue: str
    key: str
    redelivered: bool
    received_at: int
    body: BaseModel | None = None
    exchange: str = ""
    headers: dict[str, Any] = field(default_factory=dict)
    handle: Any = None


OnDelivery = Callable[[Delivery], Awaitable[None]]
OnReconnect = Callable[[], Awaitable[None]]


class UnroutableError(RolecallError):
    """No queue takes this message: the receiver's queue does not exist (any more)."""


class PublishTimeoutError(RolecallError):
    """The broker did not confirm in time; the message may have landed. Publish the same envelope again."""


class TopologyMismatchError(RolecallError):
    """A queue or exchange exists with other arguments than ours; names the argument. Fatal: an operator decides."""


class Consumer(Protocol):
    """A running subscription; it survives reconnects until it is cancelled."""

    @property
    def is_active(self) -> bool:
        """True while the broker hands us messages."""

    async def cancel(self) -> None:
        """Take no more messages; those already handed out stay ours to settle."""


class Bus(Protocol):
    """One process's access to the bus."""

    @property
    def environment(self) -> str:
        """The environment whose exchanges and queues this is."""

    @property
    def is_connected(self) -> bool:
        """True while messages can flow."""

    async def start(self) -> None:
        """Connect and declare the core topology. Raises BrokerUnreachableError or TopologyMismatchError."""

    async def close(self) -> None:
        """Stop consuming, let confirms arrive, disconnect."""

    async def declare_pool(self, pool: str) -> None:
        """Declare a pool's work queue (idempotent)."""

    async def publish(self, outgoing: Outgoing) -> None:
        """Publish; returns once confirmed. Raises UnroutableError, PublishTimeoutError, ContractError (too large)."""

    async def publish_many(self, batch: Sequence[Outgoing]) -> list[Exception | None]:
        """Publish all, confirms awaited together: one result per message, None where confirmed.

        They go out in order; what has to be repeated after a lost connection may come later than the rest.
        """

    async def consume(self, queue: str, on_delivery: OnDelivery, *, prefetch: int) -> Consumer:
        """Subscribe to a queue by its full name (`bus.topology`).

        The callback gets one delivery at a time, in order; one that raises has its delivery retried (no broker) or
        parked (anything else). During an outage the consumer comes back inactive and becomes active by itself.
        Raises SettingsError if there is no such queue, or it may not be read.
        """

    async def consume_control(self, pool: str, instance: str, on_delivery: OnDelivery) -> Consumer:
        """Subscribe to orders for one instance: a fresh exclusive queue per connection."""

    async def consume_feed(self, task: str, on_delivery: OnDelivery) -> Consumer:
        """Subscribe to the progress of one task (`#` for all): a fresh exclusive queue per connection."""

    async def settle(self, delivery: Delivery, settlement: Settlement, reason: str = "") -> None:
        """End a delivery. One from an earlier connection is left alone: the broker hands it out again."""

    async def settle_many(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge a group at once."""

    def add_reconnect_listener(self, callback: OnReconnect) -> None:
        """Have `callback` awaited after each reconnect, once topology and consumers are back."""


def no_queue_takes(outgoing: Outgoing) -> UnroutableError:
    """The error of a publish that found no queue."""
    return UnroutableError(
        f"No queue takes {outgoing.envelope.kind} from {outgoing.exchange.value!r} with key {outgoing.key!r}.",
        suggestion="Its receiver is not there (any more); it declares its queue when it starts.",
    )


def no_such_queue(name: str) -> SettingsError:
    """The error of a consumer whose queue does not exist."""
    return SettingsError(f"There is no queue {name!r}.", suggestion="Declare its pool first.")

"""Exchanges, queues and bindings as plain values; whoever declares them (`bus.amqp`, `bus.memory`) reads them here.

Rules that the values hold:

* `work` has no alternate exchange and no catch-all binding, so that `mandatory` tells the publisher the truth.
* `events` and `dead` have the alternate exchange `unroutable`: at-least-once dead-lettering stalls behind messages
  that find no queue.
* Every quorum queue names its delivery limit: 3.10 has none by default, 4.x has 20.
* Shared queues are durable (4.3 refuses transient ones); only a connection's own queues are exclusive.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from bus.api import Exchange
from schemas.clock import new_id
from schemas.errors import ContractError, SettingsError

# Work that nobody took is garbage after this; the supervisor's timer dispatches it again.
WORK_TTL_MS = 300_000
# Three missed heartbeats are a lost instance, so an older one tells nothing.
HEARTBEAT_TTL_MS = 15_000
HEARTBEAT_MAX_LENGTH = 10_000
FEED_MAX_LENGTH = 1_000
# A worker that takes the same work this often without settling it dies of it.
WORK_DELIVERY_LIMIT = 20
# The supervisor gets everything back when it restarts, and may restart often without anything being wrong.
SUPERVISOR_DELIVERY_LIMIT = 200
# Nothing comes after these two queues, so reading them must never use a message up.
LAST_RESORT_DELIVERY_LIMIT = 1_000_000

Arguments = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class ExchangeSpec:
    """A durable exchange."""

    name: str
    kind: Literal["topic", "fanout"]
    arguments: Arguments = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A queue: shared and durable, or one connection's own."""

    name: str
    arguments: Arguments
    is_exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Binding:
    """Messages of `exchange` whose key matches `pattern` go to `queue`."""

    exchange: str
    queue: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Layout:
    """Things that are declared together, in this order."""

    exchanges: tuple[ExchangeSpec, ...] = ()
    queues: tuple[QueueSpec, ...] = ()
    bindings: tuple[Binding, ...] = ()


class Topology:
    """Everything that one environment has on the broker."""

    def __init__(self, environment: str) -> None:
        # A dot would let `a.work` + `x` and `a` + `work.x` be the same queue.
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", environment):
            raise SettingsError(
                f"{environment!r} cannot name an environment.",
                suggestion="Set ROLECALL_ENVIRONMENT to letters, digits, '-' and '_', at most 100 of them.",
            )
        self.environment = environment

    def exchange(self, exchange: Exchange) -> str:
        """The full name of an exchange."""
        return f"{self.environment}.{exchange.value}"

    @property
    def supervisor(self) -> str:
        """The queue of everything that the supervisor must hear."""
        return f"{self.environment}.supervisor"

    @property
    def heartbeat(self) -> str:
        """The queue of heartbeats; they may be lost."""
        return f"{self.environment}.supervisor.heartbeat"

    @property
    def dead(self) -> str:
        """The queue of parked and dead-lettered messages."""
        return f"{self.environment}.dead"

    @property
    def unroutable(self) -> str:
        """The queue of what found no queue."""
        return f"{self.environment}.unroutable"

    def work(self, pool: str) -> str:
        """The queue of a pool's work."""
        return f"{self.environment}.work.{_checked_pool(pool)}"

    @property
    def core(self) -> Layout:
        """What every process declares before it does anything else."""
        exchanges = tuple(
            ExchangeSpec(
                self.exchange(exchange),
                "fanout" if exchange is Exchange.UNROUTABLE else "topic",
                {"alternate-exchange": self.exchange(Exchange.UNROUTABLE)}
                if exchange in _LAST_TO_CATCH
                else {},
            )
            # The alternate exchange first: the others name it.
            for exchange in sorted(Exchange, key=lambda one: one is not Exchange.UNROUTABLE)
        )
        queues = (
            # The most precious first: a broker killed within half a second of a declaration forgets the last one (3.10).
            QueueSpec(self.supervisor, _quorum(SUPERVISOR_DELIVERY_LIMIT) | self._to_dead()),
            QueueSpec(self.dead, _quorum(LAST_RESORT_DELIVERY_LIMIT)),
            QueueSpec(self.unroutable, _quorum(LAST_RESORT_DELIVERY_LIMIT)),
            QueueSpec(
                self.heartbeat,
                {
                    "x-queue-type": "classic",
                    "x-message-ttl": HEARTBEAT_TTL_MS,
                    "x-max-length": HEARTBEAT_MAX_LENGTH,
                    "x-overflow": "drop-head",
                },
            ),
        )
        bindings = (
            Binding(self.exchange(Exchange.UNROUTABLE), self.unroutable, ""),
            Binding(self.exchange(Exchange.DEAD), self.dead, "#"),
            Binding(self.exchange(Exchange.EVENTS), self.supervisor, "#"),
            Binding(self.exchange(Exchange.HEARTBEAT), self.heartbeat, "#"),
        )
        return Layout(exchanges, queues, bindings)

    def pool(self, pool: str) -> Layout:
        """A pool's work queue. What expires or is never settled goes to `dead`, where it can be seen."""
        queue = QueueSpec(
            self.work(pool), _quorum(WORK_DELIVERY_LIMIT) | self._to_dead() | {"x-message-ttl": WORK_TTL_MS}
        )
        return Layout(queues=(queue,), bindings=(Binding(self.exchange(Exchange.WORK), queue.name, pool),))

    def control(self, pool: str, instance: str) -> Layout:
        """A connection's own queue of orders, under a new name each time: the old name may still be locked."""
        key = control_key(pool, instance)
        queue = QueueSpec(f"{self.environment}.control.{key}.{new_id()}", _CLASSIC, is_exclusive=True)
        return Layout(queues=(queue,), bindings=(Binding(self.exchange(Exchange.CONTROL), queue.name, key),))

    def feed(self, task: str) -> Layout:
        """A watcher's own queue of one task's progress (`#` for all tasks); the oldest picture goes first."""
        arguments = dict(_CLASSIC) | {"x-max-length": FEED_MAX_LENGTH, "x-overflow": "drop-head"}
        queue = QueueSpec(f"{self.environment}.feed.{new_id()}", arguments, is_exclusive=True)
        return Layout(queues=(queue,), bindings=(Binding(self.exchange(Exchange.FEED), queue.name, task),))

    def _to_dead(self) -> dict[str, str | int]:
        return {
            "x-dead-letter-exchange": self.exchange(Exchange.DEAD),
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",  # at-least-once is silently at-most-once without it
        }


def control_key(pool: str, instance: str) -> str:
    """The routing key of orders to one instance. Dots in host names would be taken for more words of the key."""
    return f"{_checked_pool(pool)}.{instance.replace('.', '-')}"


def _quorum(delivery_limit: int) -> dict[str, str | int]:
    return {"x-queue-type": "quorum", "x-delivery-limit": delivery_limit}


def _checked_pool(pool: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,63}", pool):
        raise ContractError(
            f"{pool!r} cannot name a pool.",
            suggestion="Use lower-case letters, digits and '-', at most 64 of them.",
        )
    return pool


_LAST_TO_CATCH = (Exchange.EVENTS, Exchange.DEAD)
_CLASSIC: Arguments = MappingProxyType({"x-queue-type": "classic"})

"""A broker inside one process: what RabbitMQ does with our topology, read from the same plain values.

It knows topic and fanout exchanges, alternate exchanges, mandatory publishes, message and queue time to live (at the
head of the queue, as RabbitMQ has it), length limits, delivery limits, dead-lettering, prefetch, exclusive queues,
and what a lost connection or a restart does to deliveries. One event loop; no threads.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from bus.topology import ExchangeSpec, Layout, QueueSpec
from schemas.clock import now_us


@dataclass(frozen=True, slots=True)
class Stored:
    """A message as it lies in a queue.

    `exchange` is the one it was published to (filled in then), `expires_at` microseconds UTC, and `returns` counts how
    often it was handed out and came back.
    """

    raw: bytes
    key: str
    exchange: str = ""
    headers: Mapping[str, Any] = field(default_factory=dict)
    user: str | None = None
    expires_at: int | None = None
    is_persistent: bool = True
    returns: int = 0


class Subscription:
    """One consumer of a queue, with the deliveries that it has not settled."""

    def __init__(
        self,
        queue: "MemoryQueue",
        prefetch: int,
        hand_over: Callable[[int, Stored], None],
        on_gone: Callable[[], None],
    ) -> None:
        self.queue = queue
        self.on_gone = on_gone
        self.is_open = True
        self.unsettled: dict[int, Stored] = {}
        self._prefetch = prefetch
        self._hand_over = hand_over
        self._last_tag = 0

    @property
    def has_room(self) -> bool:
        """True if it may be handed another message."""
        return self.is_open and len(self.unsettled) < self._prefetch

    def deliver(self, message: Stored) -> None:
        """Hand a message over."""
        self._last_tag += 1
        self.unsettled[self._last_tag] = message
        self._hand_over(self._last_tag, message)

    def cancel(self) -> None:
        """Take no more messages."""
        self.is_open = False
        if self in self.queue.subscriptions:
            self.queue.subscriptions.remove(self)

    def ack(self, tag: int) -> None:
        """Forget a message; an unknown tag is ignored."""
        if self.unsettled.pop(tag, None) is not None:
            self.queue.serve()

    def requeue(self, *tags: int) -> None:
        """Put messages back where they were, at the head of the queue; unknown tags are ignored."""
        back = [self.unsettled.pop(tag) for tag in tags if tag in self.unsettled]
        self.queue.take_back(back)


class MemoryQueue:
    """A queue and its consumers."""

    def __init__(self, broker: "MemoryBroker", spec: QueueSpec, owner: object | None) -> None:
        self.spec = spec
        self.owner = owner
        self.ready: deque[Stored] = deque()
        self.subscriptions: deque[Subscription] = deque()
        self._broker = broker
        self._expiry: asyncio.TimerHandle | None = None

    def put(self, message: Stored) -> None:
        """Append a message."""
        ttl_ms = self.spec.arguments.get("x-message-ttl")
        if ttl_ms is not None:
            latest = now_us() + int(ttl_ms) * 1_000
            message = replace(message, expires_at=min(latest, message.expires_at or latest))
        self.ready.append(message)
        longest = self.spec.arguments.get("x-max-length")
        if longest is not None and len(self.ready) > int(longest):
            self.ready.popleft()
        self.serve()

    def take_back(self, messages: list[Stored]) -> None:
        """Messages that were handed out and come back, oldest first."""
        limit = self.spec.arguments.get("x-delivery-limit")
        for message in reversed(messages):
            returned = replace(message, returns=message.returns + 1)
            if limit is not None and returned.returns > int(limit):
                self._bury(returned, "delivery_limit")
            else:
                self.ready.appendleft(returned)
        self.serve()

    def serve(self) -> None:
        """Hand out what can be handed out, to the consumers in turn."""
        self._expire()
        while self.ready and (subscription := self._next_with_room()) is not None:
            subscription.deliver(self.ready.popleft())
            self._expire()

    def close(self) -> None:
        """Stop the timer; the queue is gone."""
        if self._expiry is not None:
            self._expiry.cancel()

    def _next_with_room(self) -> Subscription | None:
        for _ in range(len(self.subscriptions)):
            self.subscriptions.rotate(-1)
            if self.subscriptions[-1].has_room:
                return self.subscriptions[-1]
        return None

    def _expire(self) -> None:
        now = now_us()
        while self.ready and (at := self.ready[0].expires_at) is not None and at <= now:
            self._bury(self.ready.popleft(), "expired")
        self.close()
        if self.ready and (at := self.ready[0].expires_at) is not None:
            self._expiry = asyncio.get_running_loop().call_later((at - now) / 1e6 + 0.001, self.serve)

    def _bury(self, message: Stored, reason: str) -> None:
        exchange = self.spec.arguments.get("x-dead-letter-exchange")
        if exchange is None:
            return
        death = {
            "reason": reason,
            "queue": self.spec.name,
            "exchange": message.exchange,
            "routing-keys": [message.key],
            "time": datetime.fromtimestamp(now_us() // 1_000_000, UTC),
        }
        headers = {**message.headers, "x-death": [death]}
        dead = replace(message, exchange="", headers=headers, expires_at=None, returns=0)
        self._broker.publish(str(exchange), dead)


class MemoryBroker:
    """All queues and exchanges of one process; buses connect to it as owners of what is exclusive."""

    def __init__(self) -> None:
        self.exchanges: dict[str, ExchangeSpec] = {}
        self.queues: dict[str, MemoryQueue] = {}
        self.on_stop: list[Callable[[], None]] = []
        self.running = asyncio.Event()
        self.running.set()
        self._bindings: dict[str, dict[tuple[str, str], None]] = {}

    def declare(self, layout: Layout, owner: object) -> None:
        """Declare exchanges, queues and bindings (idempotent)."""
        for exchange in layout.exchanges:
            self.exchanges.setdefault(exchange.name, exchange)
        for queue in layout.queues:
            if queue.name not in self.queues:
                self.queues[queue.name] = MemoryQueue(self, queue, owner if queue.is_exclusive else None)
        for binding in layout.bindings:
            self._bindings.setdefault(binding.exchange, {})[binding.pattern, binding.queue] = None

    def delete(self, queue: str) -> None:
        """Delete a queue with what is in it; its consumers end."""
        gone = self.queues.pop(queue)
        gone.close()
        for bound in self._bindings.values():
            for pair in [pair for pair in bound if pair[1] == queue]:
                del bound[pair]
        # Last: whoever consumed from it may declare it again at once.
        for subscription in tuple(gone.subscriptions):
            subscription.cancel()
            subscription.on_gone()

    def publish(self, exchange: str, message: Stored) -> bool:
        """Put a message into every queue that matches; False if none did, nor one of the alternate exchange."""
        spec = self.exchanges[exchange]
        if not message.exchange:
            message = replace(message, exchange=exchange)
        targets = {
            queue: None
            for pattern, queue in self._bindings.get(exchange, {})
            if spec.kind == "fanout" or topic_matches(pattern, message.key)
        }
        if not targets:
            alternate = spec.arguments.get("alternate-exchange")
            return alternate is not None and self.publish(str(alternate), message)
        for queue in targets:
            self.queues[queue].put(message)
        return True

    def subscribe(self, subscription: Subscription) -> None:
        """Begin to hand messages to a consumer."""
        subscription.queue.subscriptions.append(subscription)
        subscription.queue.serve()

    def disconnect(self, owner: object) -> None:
        """Delete the queues that were this owner's alone."""
        for name in [name for name, queue in self.queues.items() if queue.owner is owner]:
            self.delete(name)

    def stop(self) -> None:
        """What a crash of the broker does: connections end, persistent messages stay, the others are gone."""
        self.running.clear()
        for callback in tuple(self.on_stop):
            callback()
        for queue in self.queues.values():
            queue.ready = deque(message for message in queue.ready if message.is_persistent)

    def start(self) -> None:
        """Come back after `stop`."""
        self.running.set()


@lru_cache(maxsize=4096)
def topic_matches(pattern: str, key: str) -> bool:
    """True if a routing key fits a topic pattern: `*` is one word, `#` any number of words."""
    return _words_match(tuple(pattern.split(".")), tuple(key.split(".")) if key else ())


def _words_match(pattern: tuple[str, ...], words: tuple[str, ...]) -> bool:
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(_words_match(pattern[1:], words[skip:]) for skip in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and _words_match(pattern[1:], words[1:])

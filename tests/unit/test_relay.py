"""The relay: publish, again until it is confirmed, and only then acknowledge what caused it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from bus.api import (
    Bus,
    Delivery,
    Exchange,
    Outgoing,
    PublishTimeoutError,
    TopologyMismatchError,
    UnroutableError,
)
from schemas.envelope import Envelope, Sender
from schemas.errors import ContractError
from supervisor.minting import Posting
from supervisor.relay import Batch, Relay

LIMIT_S = 10.0
AWAY = PublishTimeoutError("the broker was away")
NO_QUEUE = UnroutableError("no queue takes it")


@dataclass
class ScriptedBus:
    """Answers each publish of a message with the next word of its script (None: confirmed)."""

    script: dict[str, list[Exception | None]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    declaring: list[Exception] = field(default_factory=list)

    async def publish_many(self, batch: Sequence[Outgoing]) -> list[Exception | None]:
        answers = []
        for outgoing in batch:
            name = outgoing.envelope.message_id
            self.said.append(f"publish {name}")
            script = self.script.get(name, [])
            answers.append(script.pop(0) if script else None)
        return answers

    async def settle_many(self, deliveries: Sequence[Delivery]) -> None:
        self.said.append(f"ack {len(deliveries)}")

    async def declare_pool(self, pool: str) -> None:
        self.said.append(f"declare {pool}")
        if self.declaring:
            raise self.declaring.pop(0)


def posting(name: str, exchange: Exchange = Exchange.WORK) -> Posting:
    sender = Sender(role="supervisor", instance="host-1-1", version="1")
    envelope = Envelope(
        environment="test",
        message_id=f"message-{name}",
        correlation_id="t",
        kind="action.requested",
        sender=sender,
        created_at=1,
        body={},
    )
    return Posting("t", f"message-{name}", Outgoing(exchange, "executor", envelope))


@asynccontextmanager
async def relaying(
    bus: ScriptedBus, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Relay, dict[str, str]]]:
    monkeypatch.setattr("supervisor.relay.RETRY_S", 0)
    sent: dict[str, str] = {}
    relay = Relay(cast(Bus, bus), sent.__setitem__)
    running = asyncio.create_task(relay.run())
    try:
        yield relay, sent
        if running.done():
            running.result()
    finally:
        running.cancel()
        await asyncio.wait({running})


async def drained(relay: Relay) -> None:
    async with asyncio.timeout(LIMIT_S):
        await relay.drained()


def causes(count: int) -> list[Delivery]:
    return cast(list[Delivery], [object()] * count)


async def test_causes_are_acknowledged_after_what_follows_from_them_is_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bus = ScriptedBus()
    async with relaying(bus, monkeypatch) as (relay, sent):
        relay.hand_over(Batch([posting("a"), posting("b")], causes(2)))
        relay.hand_over(Batch([posting("c")], causes(1)))
        await drained(relay)

    assert bus.said == ["publish message-a", "publish message-b", "ack 2", "publish message-c", "ack 1"]
    assert sent == {"message-a": "", "message-b": "", "message-c": ""}


async def test_only_what_was_not_confirmed_is_published_again_and_nothing_overtakes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bus = ScriptedBus({"message-a": [AWAY, AWAY]})
    async with relaying(bus, monkeypatch) as (relay, _):
        relay.hand_over(Batch([posting("a"), posting("b")], causes(1)))
        relay.hand_over(Batch([posting("c")]))
        await drained(relay)

    assert bus.said == [
        "publish message-a", "publish message-b", "publish message-a", "publish message-a", "ack 1",
        "publish message-c",
    ]  # fmt: skip


async def test_a_work_queue_that_is_gone_is_declared_even_if_the_broker_goes_away_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bus = ScriptedBus({"message-a": [NO_QUEUE, NO_QUEUE]}, declaring=[AWAY])
    async with relaying(bus, monkeypatch) as (relay, sent):
        relay.hand_over(Batch([posting("a")]))
        await drained(relay)

    assert bus.said == ["publish message-a", "declare executor"] * 2 + ["publish message-a"]
    assert sent == {"message-a": ""}


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (NO_QUEUE, "unroutable: the receiver is gone"),
        (ContractError("it is too large"), "not sent: it is too large"),
    ],
)
async def test_an_order_that_nobody_takes_or_no_bus_carries_is_done_with_and_noted(
    monkeypatch: pytest.MonkeyPatch, error: Exception, note: str
) -> None:
    bus = ScriptedBus({"message-a": [error]})
    async with relaying(bus, monkeypatch) as (relay, sent):
        relay.hand_over(Batch([posting("a", Exchange.CONTROL)], causes(1)))
        await drained(relay)

    assert (bus.said, sent) == (["publish message-a", "ack 1"], {"message-a": note})


@pytest.mark.parametrize("where", ["publish", "declare"])
async def test_a_queue_with_other_arguments_ends_the_supervisor_loudly(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    mismatch = TopologyMismatchError("other arguments")
    script: Any = {"message-a": [mismatch if where == "publish" else NO_QUEUE]}
    bus = ScriptedBus(script, declaring=[mismatch])
    monkeypatch.setattr("supervisor.relay.RETRY_S", 0)
    relay = Relay(cast(Bus, bus), lambda name, note: None)
    relay.hand_over(Batch([posting("a")]))

    with pytest.raises(TopologyMismatchError):
        async with asyncio.timeout(LIMIT_S):
            await relay.run()

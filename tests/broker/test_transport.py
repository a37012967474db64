"""What a bus promises, on memory and on RabbitMQ alike."""

import asyncio

import pytest

from bus.api import Exchange, Outgoing, Settlement, UnroutableError
from bus.codec import encode
from bus.parking import why_dead
from bus.topology import control_key
from schemas.envelope import MAX_ENVELOPE_BYTES
from schemas.errors import BrokerUnreachableError, ContractError, SettingsError
from tests.broker.worlds import POOL, Inbox, World, event, probe, until, work


async def test_a_published_envelope_arrives_as_it_was_sent(world: World) -> None:
    bus = await world.bus()
    inbox = Inbox(bus)
    await bus.consume(world.topology.supervisor, inbox, prefetch=10)
    sent = event(world, "hello")

    await bus.publish(sent)

    (delivery,) = await inbox.wait(1)
    assert delivery.envelope == sent.envelope
    assert delivery.fault is None
    assert (delivery.queue, delivery.exchange, delivery.key, delivery.redelivered) == (
        world.topology.supervisor,
        "events",
        "probe.sent.supervisor",
        False,
    )
    assert type(delivery.body).__name__ == "ProbeSent"


async def test_messages_of_one_batch_arrive_in_order(world: World) -> None:
    bus = await world.bus()
    inbox = Inbox(bus)
    await bus.consume(world.topology.supervisor, inbox, prefetch=50)
    tokens = [str(number) for number in range(200)]

    results = await bus.publish_many([event(world, token) for token in tokens])

    await inbox.wait(200)
    assert results == [None] * 200
    assert inbox.tokens == tokens


async def test_work_for_a_pool_that_nobody_declared_is_unroutable(world: World) -> None:
    bus = await world.bus()

    with pytest.raises(UnroutableError, match="executor"):
        await bus.publish(work(world))


async def test_a_batch_tells_the_unroutable_from_the_routable(world: World) -> None:
    bus = await world.bus()
    await bus.declare_pool(POOL)
    envelope = probe(world)
    lost = Outgoing(Exchange.WORK, "nobody", envelope)

    # The same envelope, so the same message_id, several times in flight: the library mixes those up.
    results = await bus.publish_many([work(world), lost, Outgoing(Exchange.WORK, POOL, envelope), lost] * 10)

    assert [type(result) for result in results] == [
        type(None),
        UnroutableError,
        type(None),
        UnroutableError,
    ] * 10


async def test_orders_to_an_instance_that_is_gone_are_unroutable(world: World) -> None:
    bus = await world.bus()
    inbox = Inbox(bus)
    consumer = await bus.consume_control(POOL, "host.example-1-1", inbox)
    order = Outgoing(Exchange.CONTROL, control_key(POOL, "host.example-1-1"), probe(world, "order"))

    await bus.publish(order)
    await inbox.wait(1)
    await consumer.cancel()
    await bus.close()
    other = await world.bus()

    with pytest.raises(UnroutableError):
        await other.publish(order)


async def test_orders_reach_only_the_instance_they_are_for(world: World) -> None:
    bus = await world.bus()
    one, two = Inbox(bus), Inbox(bus)
    await bus.consume_control(POOL, "host-1-1", one)
    await bus.consume_control(POOL, "host-2-1", two)

    await bus.publish(Outgoing(Exchange.CONTROL, f"{POOL}.host-2-1", probe(world, "two")))
    await bus.publish(Outgoing(Exchange.CONTROL, f"{POOL}.host-1-1", probe(world, "one")))

    await one.wait(1)
    await two.wait(1)
    assert (one.tokens, two.tokens) == (["one"], ["two"])


async def test_the_feed_of_one_task_carries_nothing_of_another(world: World) -> None:
    bus = await world.bus()
    one, everything = Inbox(bus), Inbox(bus)
    await bus.consume_feed("task-1", one)
    await bus.consume_feed("#", everything)

    await bus.publish(Outgoing(Exchange.FEED, "task-2", probe(world, "two")))
    await bus.publish(Outgoing(Exchange.FEED, "task-1", probe(world, "one")))

    await everything.wait(2)
    await one.wait(1)
    assert (one.tokens, everything.tokens) == (["one"], ["two", "one"])


async def test_heartbeats_arrive(world: World) -> None:
    bus = await world.bus()
    inbox = Inbox(bus)
    await bus.consume(world.topology.heartbeat, inbox, prefetch=10)

    await bus.publish(Outgoing(Exchange.HEARTBEAT, "role.heartbeat.executor", probe(world, "beat")))

    await inbox.wait(1)
    assert inbox.tokens == ["beat"]


async def test_prefetch_bounds_what_is_handed_out(world: World) -> None:
    bus = await world.bus()
    inbox = Inbox(bus, settlement=None)
    await bus.consume(world.topology.supervisor, inbox, prefetch=3)
    await bus.publish_many([event(world, str(number)) for number in range(10)])
    await inbox.wait(3)

    await bus.settle(inbox.seen[0], Settlement.ACK)

    await inbox.wait(4)
    await until_depth(world, world.topology.supervisor, 6)
    assert inbox.tokens == ["0", "1", "2", "3"]


async def test_what_is_retried_comes_again(world: World) -> None:
    bus = await world.bus()
    inbox = Inbox(bus, settlement=None)
    await bus.consume(world.topology.supervisor, inbox, prefetch=1)
    await bus.publish(event(world, "again"))
    (first,) = await inbox.wait(1)

    await bus.settle(first, Settlement.RETRY)

    _, second = await inbox.wait(2)
    assert inbox.tokens == ["again", "again"]
    assert (first.redelivered, second.redelivered) == (False, True)


async def test_settling_twice_does_nothing(world: World) -> None:
    bus = await world.bus()
    inbox = Inbox(bus, settlement=None)
    await bus.consume(world.topology.supervisor, inbox, prefetch=1)
    await bus.publish_many([event(world, "one"), event(world, "two")])
    (first,) = await inbox.wait(1)

    await bus.settle(first, Settlement.ACK)
    await bus.settle(first, Settlement.ACK)
    await bus.settle(first, Settlement.RETRY)
    await bus.settle(first, Settlement.PARK, "twice")

    await inbox.wait(2)
    assert inbox.tokens == ["one", "two"]
    assert await world.depth(world.topology.dead) == 0


async def test_a_group_is_acknowledged_at_once_and_nothing_else_with_it(world: World) -> None:
    bus = await world.bus()
    inbox = Inbox(bus, settlement=None)
    await bus.consume(world.topology.supervisor, inbox, prefetch=10)
    await bus.publish_many([event(world, str(number)) for number in range(6)])
    seen = await inbox.wait(6)

    await bus.settle_many([seen[0], seen[1], seen[4]])
    await bus.close()

    other = await world.bus()
    again = Inbox(other)
    await other.consume(world.topology.supervisor, again, prefetch=10)
    await again.wait(3)
    assert again.tokens == ["2", "3", "5"]


async def test_what_a_closed_bus_had_not_settled_comes_again(world: World) -> None:
    bus = await world.bus()
    inbox = Inbox(bus, settlement=None)
    await bus.consume(world.topology.supervisor, inbox, prefetch=10)
    await bus.publish(event(world, "kept"))
    await inbox.wait(1)

    await bus.close()

    other = await world.bus()
    again = Inbox(other)
    await other.consume(world.topology.supervisor, again, prefetch=10)
    (delivery,) = await again.wait(1)
    assert (again.tokens, delivery.redelivered) == (["kept"], True)


async def test_a_cancelled_consumer_gives_back_what_its_callback_has_not_seen(world: World) -> None:
    bus = await world.bus()
    await bus.declare_pool(POOL)
    entered, leave = asyncio.Event(), asyncio.Event()
    seen: list[str] = []

    async def full_worker(delivery: object) -> None:
        seen.append("mine")
        entered.set()
        await leave.wait()

    consumer = await bus.consume(world.topology.work(POOL), full_worker, prefetch=5)
    await bus.publish_many([work(world, str(number)) for number in range(5)])
    await entered.wait()

    await consumer.cancel()

    free = Inbox(bus)
    await bus.consume(world.topology.work(POOL), free, prefetch=5)
    await free.wait(4)
    leave.set()
    assert sorted(free.tokens) == ["1", "2", "3", "4"]
    assert seen == ["mine"]
    assert not consumer.is_active


async def test_a_worker_that_cancels_before_its_ack_gets_nothing_more(world: World) -> None:
    bus = await world.bus()
    await bus.declare_pool(POOL)
    taken: list[str] = []

    async def worker(delivery: object) -> None:
        taken.append("taken")
        await consumer.cancel()
        await bus.settle(delivery, Settlement.ACK)  # type: ignore[arg-type]

    consumer = await bus.consume(world.topology.work(POOL), worker, prefetch=1)
    await bus.publish_many([work(world, str(number)) for number in range(3)])
    await until(lambda: bool(taken))

    await until_depth(world, world.topology.work(POOL), 2)
    assert taken == ["taken"]


async def test_a_cancel_that_is_itself_cancelled_still_ends_the_consumer(world: World) -> None:
    bus = await world.bus()
    await bus.declare_pool(POOL)
    gone, stays = Inbox(bus), Inbox(bus)
    consumer = await bus.consume(world.topology.work(POOL), gone, prefetch=5)

    cancelling = asyncio.create_task(consumer.cancel())
    await asyncio.sleep(0)
    cancelling.cancel()
    await asyncio.wait([cancelling])
    await consumer.cancel()

    await bus.consume(world.topology.work(POOL), stays, prefetch=5)
    await bus.publish_many([work(world, str(number)) for number in range(10)])
    await stays.wait(10)
    assert gone.tokens == []


async def test_a_consumer_that_comes_and_goes_takes_each_message_once(world: World) -> None:
    bus = await world.bus()
    await bus.declare_pool(POOL)
    await bus.publish_many([work(world, str(number)) for number in range(30)])
    inbox = Inbox(bus)

    while len(inbox.seen) < 30:
        before = len(inbox.seen)
        consumer = await bus.consume(world.topology.work(POOL), inbox, prefetch=2)
        await inbox.wait(before + 1)
        await consumer.cancel()

    await until_depth(world, world.topology.work(POOL), 0)
    assert sorted(map(int, inbox.tokens)) == list(range(30))


async def test_garbage_arrives_with_a_fault_and_the_consumer_goes_on(world: World) -> None:
    bus = await world.bus()
    inbox = Inbox(bus)
    await bus.consume(world.topology.supervisor, inbox, prefetch=10)

    await world.publish_raw(Exchange.EVENTS, "x.y", b"\xc1 not MessagePack")
    await world.publish_raw(Exchange.EVENTS, "x.y", encode(probe(world, environment="elsewhere")))
    await world.publish_raw(Exchange.EVENTS, "x.y", b"\x00" * (MAX_ENVELOPE_BYTES + 1))
    await bus.publish(event(world, "good"))

    garbage, foreign, large, good = await inbox.wait(4)
    assert garbage.envelope is None
    assert garbage.fault is not None
    assert "not MessagePack" in garbage.fault
    assert foreign.envelope is not None
    assert foreign.fault == "It comes from another environment, 'elsewhere'."
    assert large.fault is not None
    assert "1048577 bytes" in large.fault
    assert good.fault is None


async def test_a_parked_message_keeps_its_bytes_and_tells_why(world: World) -> None:
    bus = await world.bus("host-7-7")
    raw = b"\xc1 garbage \xff" * 100
    await bus.declare_pool(POOL)
    parking = Inbox(bus, Settlement.PARK, reason="It does not decode. " * 200)
    await bus.consume(world.topology.work(POOL), parking, prefetch=1)
    dead = Inbox(bus)
    await bus.consume(world.topology.dead, dead, prefetch=1)

    await world.publish_raw(
        Exchange.WORK, POOL, raw, {"x-death": [{"reason": "expired", "count": 1}], "huge": "x" * 5000}
    )

    (delivery,) = await dead.wait(1)
    told = why_dead(delivery.headers, world.environment)
    assert delivery.raw == raw
    assert told is not None
    assert told.reason.startswith("It does not decode.")
    assert (told.queue, told.exchange, told.key, told.by) == (
        world.topology.work(POOL),
        "work",
        POOL,
        "host-7-7",
    )
    assert not [name for name in delivery.headers if "death" in name or name == "huge"]
    assert sum(len(name) + len(str(value).encode()) for name, value in delivery.headers.items()) < 2048
    await until_depth(world, world.topology.work(POOL), 0)


async def test_a_callback_that_fails_has_its_message_parked_and_gets_the_next(world: World) -> None:
    bus = await world.bus()
    dead, seen = Inbox(bus), []
    await bus.consume(world.topology.dead, dead, prefetch=1)

    async def clumsy(delivery: object) -> None:
        seen.append(delivery)
        raise ValueError("cannot count")

    await bus.consume(world.topology.supervisor, clumsy, prefetch=1)

    await bus.publish_many([event(world, "one"), event(world, "two")])

    await dead.wait(2)
    told = why_dead(dead.seen[0].headers, world.environment)
    assert told is not None
    assert told.reason == "Its receiver failed: ValueError: cannot count"
    assert dead.tokens == ["one", "two"]
    assert len(seen) == 2


async def test_expired_work_is_dead_and_says_so(world: World) -> None:
    bus = await world.bus()
    await bus.declare_pool(POOL)
    dead = Inbox(bus)
    await bus.consume(world.topology.dead, dead, prefetch=1)

    await bus.publish(work(world, "late", ttl_ms=20))

    (delivery,) = await dead.wait(1)
    told = why_dead(delivery.headers, world.environment)
    assert told is not None
    assert told.reason == "It expired before anybody took it."
    assert (told.queue, told.exchange, told.key, told.by) == (
        world.topology.work(POOL),
        "work",
        POOL,
        "broker",
    )
    assert abs(told.at - delivery.received_at) < 60_000_000


async def test_work_that_always_comes_back_is_dead_at_the_delivery_limit(world: World) -> None:
    bus = await world.bus()
    await bus.declare_pool(POOL)
    dead, never = Inbox(bus), Inbox(bus, Settlement.RETRY)
    await bus.consume(world.topology.dead, dead, prefetch=1)
    await bus.consume(world.topology.work(POOL), never, prefetch=1)

    await bus.publish(work(world, "poison"))

    (delivery,) = await dead.wait(1)
    told = why_dead(delivery.headers, world.environment)
    assert told is not None
    assert told.reason == "It was handed out too often without being settled."
    assert len(never.seen) == 21


async def test_an_event_that_finds_no_queue_waits_in_unroutable_with_its_origin(world: World) -> None:
    bus = await world.bus()
    await world.delete_queue(world.topology.supervisor)
    inbox = Inbox(bus)
    await bus.consume(world.topology.unroutable, inbox, prefetch=10)

    await bus.publish(event(world, "homeless"))

    (delivery,) = await inbox.wait(1)
    assert (delivery.exchange, delivery.key, inbox.tokens) == (
        "events",
        "probe.sent.supervisor",
        ["homeless"],
    )


async def test_a_deleted_queue_comes_back_for_its_consumer(world: World) -> None:
    bus = await world.bus()
    await bus.declare_pool(POOL)
    inbox = Inbox(bus)
    consumer = await bus.consume(world.topology.work(POOL), inbox, prefetch=1)

    await world.delete_queue(world.topology.work(POOL))
    await published_somehow(bus, work(world, "after"))

    await inbox.wait(1)
    await until(lambda: consumer.is_active)
    assert inbox.tokens == ["after"]


async def test_a_lost_connection_brings_unsettled_messages_again_and_late_settling_does_nothing(
    world: World,
) -> None:
    bus = await world.bus()
    inbox = Inbox(bus, settlement=None)
    back = asyncio.Event()

    async def on_reconnect() -> None:
        back.set()

    bus.add_reconnect_listener(on_reconnect)
    consumer = await bus.consume(world.topology.supervisor, inbox, prefetch=10)
    await bus.publish(event(world, "one"))
    (first,) = await inbox.wait(1)

    await world.cut(bus)
    await bus.settle(first, Settlement.ACK)

    _, second = await inbox.wait(2)
    async with asyncio.timeout(10):
        await back.wait()
    assert bus.is_connected
    assert consumer.is_active
    assert second.redelivered
    await bus.settle(first, Settlement.PARK, "too late")
    await bus.settle(second, Settlement.ACK)
    await bus.publish(event(world, "two"))
    await inbox.wait(3)
    assert inbox.tokens == ["one", "one", "two"]
    assert await world.depth(world.topology.dead) == 0


async def test_orders_arrive_again_after_a_lost_connection(world: World) -> None:
    bus = await world.bus()
    inbox = Inbox(bus)
    await bus.consume_control(POOL, "host-1-1", inbox)

    await world.cut(bus)

    await published_somehow(bus, Outgoing(Exchange.CONTROL, f"{POOL}.host-1-1", probe(world, "order")))
    await inbox.wait(1)
    assert inbox.tokens == ["order"]


async def test_what_is_in_flight_when_the_connection_is_lost_is_published_all_the_same(world: World) -> None:
    bus = await world.bus()
    inbox = Inbox(bus)
    await bus.consume(world.topology.supervisor, inbox, prefetch=100)
    tokens = {str(number) for number in range(300)}

    publishing = asyncio.create_task(bus.publish_many([event(world, token) for token in tokens]))
    await asyncio.sleep(0)
    await world.cut(bus)

    assert await publishing == [None] * 300
    await until(lambda: set(inbox.tokens) == tokens)


async def test_a_body_that_breaks_its_schema_is_refused_before_it_is_sent(world: World) -> None:
    bus = await world.bus()
    wrong = probe(world).model_copy(update={"body": {"tokens": 3}})

    with pytest.raises(ContractError, match=r"probe\.sent.*token"):
        await bus.publish(Outgoing(Exchange.EVENTS, "x.y", wrong))
    assert await bus.publish_many([Outgoing(Exchange.EVENTS, "x.y", wrong), event(world)]) != [None, None]


async def test_consuming_from_a_queue_that_does_not_exist_is_an_error(world: World) -> None:
    bus = await world.bus()

    with pytest.raises(SettingsError, match="There is no queue"):
        await bus.consume(world.topology.work(POOL), Inbox(bus), prefetch=1)


async def test_a_closed_bus_says_so(world: World) -> None:
    bus = await world.bus()

    await bus.close()

    assert not bus.is_connected
    with pytest.raises(BrokerUnreachableError, match="closed"):
        await bus.publish(event(world))


async def until_depth(world: World, queue: str, depth: int) -> None:
    """Wait until that many messages are ready in the queue."""
    async with asyncio.timeout(10):
        while await world.depth(queue) != depth:  # noqa: ASYNC110  # a broker tells its depth only if asked
            await asyncio.sleep(0.01)


async def published_somehow(bus: object, outgoing: Outgoing) -> None:
    """Publish as soon as a queue is there."""
    async with asyncio.timeout(10):
        while True:
            try:
                await bus.publish(outgoing)  # type: ignore[attr-defined]
            except UnroutableError:
                await asyncio.sleep(0.01)
            else:
                return

"""What is true of RabbitMQ only: what is on the wire, what is refused, and in which words."""

import asyncio
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import aio_pika
import pytest

from bus.amqp import AmqpBus, consume
from bus.api import Bus, Exchange, Outgoing, Settlement, TopologyMismatchError
from bus.topology import WORK_DELIVERY_LIMIT
from rolecall.processes.private_node import PrivateNode
from schemas.errors import BrokerUnreachableError, ExitCode, SettingsError
from tests.broker.worlds import POOL, Inbox, RabbitWorld, event, probe, until, work

PASSWORD = "s3cret pass"


async def test_an_envelope_is_mirrored_into_amqp_properties(rabbit: RabbitWorld) -> None:
    bus = await rabbit.bus()
    sent = event(rabbit, causation_id="cause-1234", attempt=2, traceparent="00-ab-cd-01", ttl_ms=60_000)

    await bus.publish(sent)

    async with (await rabbit.admin()).channel() as channel:
        message = await (await channel.get_queue(rabbit.topology.supervisor, ensure=False)).get()
        await message.ack()
    assert message.delivery_mode == aio_pika.DeliveryMode.PERSISTENT
    assert message.type == "probe.sent"
    assert message.correlation_id == sent.envelope.correlation_id
    assert message.app_id == "supervisor/host-1-1"
    assert message.user_id == "rolecall"
    assert message.content_type == "application/msgpack"
    assert message.expiration == 60.0
    assert message.timestamp == datetime.fromtimestamp(sent.envelope.created_at // 1_000_000, UTC)
    assert {name: value for name, value in message.headers.items() if name != "x-delivery-count"} == {
        "message-id": sent.envelope.message_id,
        "causation-id": "cause-1234",
        "attempt": 2,
        "traceparent": "00-ab-cd-01",
    }
    assert message.message_id not in (None, sent.envelope.message_id)


async def test_the_amqp_message_id_differs_each_time_the_same_envelope_goes_out(rabbit: RabbitWorld) -> None:
    bus = await rabbit.bus()
    sent = event(rabbit)

    await bus.publish_many([sent, sent, sent])

    ids = set()
    async with (await rabbit.admin()).channel() as channel:
        queue = await channel.get_queue(rabbit.topology.supervisor, ensure=False)
        for _ in range(3):
            message = await queue.get()
            ids.add(message.message_id)
            await message.ack()
    assert len(ids) == 3


async def test_heartbeats_are_transient(rabbit: RabbitWorld) -> None:
    bus = await rabbit.bus()

    await bus.publish(Outgoing(Exchange.HEARTBEAT, "x.y", probe(rabbit)))

    async with (await rabbit.admin()).channel() as channel:
        queue = await channel.get_queue(rabbit.topology.heartbeat, ensure=False)
        message = None
        async with asyncio.timeout(10):
            while message is None:
                message = await queue.get(no_ack=True, fail=False)
    assert message.delivery_mode == aio_pika.DeliveryMode.NOT_PERSISTENT


async def test_a_process_has_two_connections_with_a_heartbeat_of_ten_seconds(rabbit: RabbitWorld) -> None:
    bus = await rabbit.bus()

    session = await _session(bus)

    tuned = [_heartbeat(session._publishing), _heartbeat(session._consuming)]
    assert session._publishing is not session._consuming
    assert tuned == [10, 10]


async def test_a_queue_with_other_arguments_is_fatal_and_names_the_argument(rabbit: RabbitWorld) -> None:
    bus = await rabbit.bus()
    async with (await rabbit.admin()).channel() as channel:
        await channel.declare_queue(
            rabbit.topology.work(POOL),
            durable=True,
            arguments={"x-queue-type": "quorum", "x-delivery-limit": 3},
        )

    with pytest.raises(TopologyMismatchError) as raised:
        await bus.declare_pool(POOL)

    assert f"queue '{rabbit.topology.work(POOL)}'" in str(raised.value)
    assert "x-" in str(raised.value)
    assert "ROLECALL_ENVIRONMENT" in str(raised.value)


async def test_a_core_exchange_of_another_type_ends_the_start(rabbit: RabbitWorld) -> None:
    await (await rabbit.bus()).close()
    async with (await rabbit.admin()).channel() as channel:
        await channel.exchange_delete(rabbit.topology.exchange(Exchange.FEED))
        await channel.declare_exchange(rabbit.topology.exchange(Exchange.FEED), "direct", durable=True)

    with pytest.raises(TopologyMismatchError, match=r"'type'.*ours is 'topic', the broker has 'direct'"):
        await AmqpBus(rabbit.environment, rabbit.url).start()


async def test_a_mismatch_found_after_a_reconnect_ends_the_bus_instead_of_looping(
    rabbit: RabbitWorld,
) -> None:
    bus = await rabbit.bus()
    async with (await rabbit.admin()).channel() as channel:
        await channel.exchange_delete(rabbit.topology.exchange(Exchange.FEED))
        await channel.declare_exchange(rabbit.topology.exchange(Exchange.FEED), "direct", durable=True)

    await rabbit.cut(bus)

    with pytest.raises(TopologyMismatchError):
        await bus.publish(event(rabbit))
    with pytest.raises(TopologyMismatchError):
        await bus.publish(Outgoing(Exchange.HEARTBEAT, "x.y", probe(rabbit)))
    assert not bus.is_connected


async def test_a_wrong_password_is_one_line_that_does_not_contain_it(rabbit_node: PrivateNode) -> None:
    wrong = _with_login(rabbit_node.url, f"rolecall:{PASSWORD.replace(' ', '%20')}")

    with pytest.raises(BrokerUnreachableError) as raised:
        await AmqpBus("test", wrong).start()

    told = str(raised.value)
    assert "does not let user 'rolecall' in" in told
    assert "ROLECALL_BROKER_URL" in told
    assert "\n" not in told
    assert raised.value.exit_code == ExitCode.BROKER_UNREACHABLE
    _assert_never_mentions(raised.value, "s3cret")


async def test_no_broker_is_one_line_that_says_where_and_what_to_do() -> None:
    with pytest.raises(BrokerUnreachableError) as raised:
        await AmqpBus("test", "amqp://rolecall:s3cret@127.0.0.1:1/").start()

    told = str(raised.value)
    assert told.startswith("The broker at amqp://rolecall@127.0.0.1:1/ does not answer")
    assert "rolecall doctor" in told
    assert "\n" not in told
    _assert_never_mentions(raised.value, "s3cret")


@pytest.mark.parametrize("url", ["", "http://rolecall:s3cret@host/", "amqp://", "amqp://a:s3cret@host:port/"])
async def test_what_is_no_broker_url_is_said_without_quoting_it(url: str) -> None:
    with pytest.raises(SettingsError, match="broker's URL is not one") as raised:
        await AmqpBus("test", url).start()

    _assert_never_mentions(raised.value, "s3cret")


async def test_an_unknown_virtual_host_is_unreachable(rabbit_node: PrivateNode) -> None:
    with pytest.raises(BrokerUnreachableError, match="nowhere"):
        await AmqpBus("test", f"{rabbit_node.url}nowhere").start()


async def test_the_next_address_is_tried_when_one_does_not_answer(rabbit: RabbitWorld) -> None:
    bus = AmqpBus(rabbit.environment, ["amqp://127.0.0.1:1/", rabbit.url])

    await bus.start()

    await bus.publish(event(rabbit))
    await bus.close()


async def test_an_exchange_that_was_deleted_comes_back_with_the_next_publish(rabbit: RabbitWorld) -> None:
    bus = await rabbit.bus()
    inbox = Inbox(bus)
    await bus.consume(rabbit.topology.supervisor, inbox, prefetch=10)
    async with (await rabbit.admin()).channel() as channel:
        await channel.exchange_delete(rabbit.topology.exchange(Exchange.EVENTS))

    assert await bus.publish_many([event(rabbit, str(number)) for number in range(5)]) == [None] * 5

    await until(lambda: set(inbox.tokens) == {"0", "1", "2", "3", "4"})


async def test_a_consumer_outlives_a_quick_delete_and_redeclare_many_times(
    rabbit: RabbitWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The broker may forget the consumer without a word; it does so in most runs of this.
    monkeypatch.setattr(consume, "IDLE_RENEW_S", 0.3)
    bus = await rabbit.bus()
    await bus.declare_pool(POOL)
    inbox = Inbox(bus)
    consumer = await bus.consume(rabbit.topology.work(POOL), inbox, prefetch=1)

    for _ in range(10):
        await rabbit.delete_queue(rabbit.topology.work(POOL))
        await bus.declare_pool(POOL)
    await until(lambda: consumer.is_active)
    token = "last"
    async with asyncio.timeout(15):
        while token not in inbox.tokens:
            # One that was published into a queue that the consumer had not reached yet went down with it.
            await bus.publish(work(rabbit, token))
            await asyncio.sleep(0.05)


async def test_many_unroutable_dead_letters_do_not_stall_dead_lettering(rabbit: RabbitWorld) -> None:
    bus = await rabbit.bus()
    await bus.declare_pool(POOL)
    await rabbit.delete_queue(rabbit.topology.dead)

    # More than the 32 that dead-lettering keeps under way.
    await bus.publish_many([work(rabbit, str(number), ttl_ms=1) for number in range(100)])

    caught = Inbox(bus)
    await bus.consume(rabbit.topology.unroutable, caught, prefetch=100)
    await caught.wait(100)
    assert sorted(map(int, caught.tokens)) == list(range(100))


async def test_a_channel_that_the_broker_closes_is_replaced(rabbit: RabbitWorld) -> None:
    bus = await rabbit.bus()
    inbox = Inbox(bus, settlement=None)
    consumer = await bus.consume(rabbit.topology.supervisor, inbox, prefetch=10)
    await bus.publish(event(rabbit, "one"))
    (delivery,) = await inbox.wait(1)

    # Acknowledging what was never delivered closes the channel, as consumer_timeout would.
    await delivery.handle[0].channel.basic_ack(4711)

    _, again = await inbox.wait(2)
    await until(lambda: consumer.is_active)
    assert bus.is_connected
    assert again.redelivered
    await bus.settle_many([delivery, again])


async def test_a_worker_may_come_and_go_without_new_channels(rabbit: RabbitWorld) -> None:
    bus = await rabbit.bus()
    await bus.declare_pool(POOL)
    inbox = Inbox(bus)

    for _ in range(20):
        consumer = await bus.consume(rabbit.topology.work(POOL), inbox, prefetch=1)
        await consumer.cancel()

    session = await _session(bus)
    assert session._consuming.transport is not None
    assert len(session._consuming.transport.connection.channels) <= 2


@pytest.fixture
def hardened(rabbit: RabbitWorld, rabbit_node: PrivateNode) -> Iterator[str]:
    """The URL of an executor's user: may write events and read its work, and may declare nothing."""
    user, environment = f"executor-{rabbit.environment[-6:]}", rabbit.environment

    def ctl(*arguments: str) -> None:
        subprocess.run([str(rabbit_node.rabbitmqctl), "-q", *arguments], check=True, capture_output=True)

    ctl("add_user", user, PASSWORD)
    ctl(
        "set_permissions",
        user,
        "^$",
        rf"^{environment}\.(events|heartbeat|dead|control)$",
        rf"^{environment}\.work\.{POOL}$",
    )
    yield _with_login(rabbit_node.url, f"{user}:{PASSWORD.replace(' ', '%20')}")
    ctl("delete_user", user)


async def test_a_user_who_may_not_declare_uses_what_an_administrator_declared(
    rabbit: RabbitWorld, hardened: str
) -> None:
    administrator = await rabbit.bus()
    await administrator.declare_pool(POOL)
    bus = AmqpBus(rabbit.environment, hardened)

    await bus.start()
    await bus.declare_pool(POOL)

    inbox = Inbox(bus)
    await bus.consume(rabbit.topology.work(POOL), inbox, prefetch=1)
    await bus.publish(event(rabbit))
    await administrator.publish(work(rabbit, "mine"))
    await inbox.wait(1)
    await bus.close()
    assert inbox.tokens == ["mine"]


async def test_a_user_who_may_not_declare_is_told_what_is_missing(rabbit: RabbitWorld, hardened: str) -> None:
    bus = AmqpBus(rabbit.environment, hardened)

    with pytest.raises(SettingsError, match=r"does not exist, and this user may not declare it"):
        await bus.start()

    await rabbit.bus()  # so that there is something to clean up


async def test_a_forbidden_publish_is_told_and_does_not_take_others_with_it(
    rabbit: RabbitWorld, hardened: str
) -> None:
    administrator = await rabbit.bus()
    await administrator.declare_pool(POOL)
    bus = AmqpBus(rabbit.environment, hardened)
    await bus.start()

    results = await bus.publish_many([event(rabbit), work(rabbit), event(rabbit), event(rabbit)])

    await bus.close()
    assert [type(result) for result in results] == [type(None), SettingsError, type(None), type(None)]
    assert f"{rabbit.environment}.work" in str(results[1])


async def test_a_sender_that_the_broker_does_not_vouch_for_is_a_fault(rabbit: RabbitWorld) -> None:
    publisher = await rabbit.bus()
    trusting = await rabbit.bus(roles_of_users={"rolecall": "supervisor"})
    inbox = Inbox(trusting, settlement=Settlement.ACK)
    await trusting.consume(rabbit.topology.supervisor, inbox, prefetch=1)
    forged = probe(rabbit)
    forged = forged.model_copy(update={"sender": forged.sender.model_copy(update={"role": "tester"})})

    await publisher.publish(event(rabbit))
    await publisher.publish(Outgoing(Exchange.EVENTS, "x.y", forged))

    honest, liar = await inbox.wait(2)
    assert honest.fault is None
    assert liar.fault == "It claims to come from 'tester', but the broker says 'rolecall'."


def test_the_delivery_limit_of_work_is_the_one_that_the_suite_counts_on() -> None:
    assert WORK_DELIVERY_LIMIT == 20


async def _session(bus: Bus) -> Any:
    assert isinstance(bus, AmqpBus)
    return await bus.ready()


def _heartbeat(connection: aio_pika.abc.AbstractConnection) -> int:
    assert connection.transport is not None
    tune = connection.transport.connection.connection_tune
    return int(tune.heartbeat or 0)


def _with_login(url: str, login: str) -> str:
    return f"amqp://{login}@{url.rpartition('@')[2]}"


def _assert_never_mentions(error: BaseException | None, secret: str) -> None:
    while error is not None:
        assert secret not in str(error)
        assert secret not in repr(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)

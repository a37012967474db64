"""The lines between environments, pools and instances, and the promises that arguments make."""

import pytest

from bus.api import Exchange
from bus.memory_broker import topic_matches
from bus.topology import Topology, control_key
from schemas.errors import ContractError, SettingsError


@pytest.mark.parametrize("name", ["", "a.b", "a b", "-a", "a/b", "a#", "x" * 101])
def test_an_environment_whose_name_could_reach_into_another_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="ROLECALL_ENVIRONMENT"):
        Topology(name)


@pytest.mark.parametrize("pool", ["", "a.b", "A", "1a", "#", "*", "x" * 65])
def test_a_pool_whose_name_would_be_a_pattern_is_refused(pool: str) -> None:
    with pytest.raises(ContractError):
        Topology("test").work(pool)


def test_a_host_name_with_dots_stays_one_word_of_the_key() -> None:
    assert control_key("executor", "host.example.org-7-9") == "executor.host-example-org-7-9"


def test_commands_have_no_catch_all_so_that_mandatory_tells_the_truth() -> None:
    topology = Topology("test")
    guarded = {topology.exchange(one) for one in (Exchange.WORK, Exchange.CONTROL)}

    assert [one for one in topology.core.exchanges if one.name in guarded and one.arguments] == []
    assert [one for one in topology.core.bindings if one.exchange in guarded] == []


def test_every_shared_queue_says_its_type_and_quorum_queues_their_delivery_limit() -> None:
    topology = Topology("test")
    queues = (*topology.core.queues, *topology.pool("executor").queues)

    for queue in queues:
        assert not queue.is_exclusive
        assert queue.arguments["x-queue-type"] in ("quorum", "classic")
        assert ("x-delivery-limit" in queue.arguments) == (queue.arguments["x-queue-type"] == "quorum")
        assert "x-max-priority" not in queue.arguments


def test_dead_lettering_at_least_once_has_the_overflow_it_needs_and_somewhere_to_go() -> None:
    topology = Topology("test")
    strict = [
        one
        for one in (*topology.core.queues, *topology.pool("executor").queues)
        if one.arguments.get("x-dead-letter-strategy") == "at-least-once"
    ]
    dead = next(one for one in topology.core.exchanges if one.name == "test.dead")

    assert [one.name for one in strict] == ["test.supervisor", "test.work.executor"]
    assert {one.arguments["x-overflow"] for one in strict} == {"reject-publish"}
    assert {one.arguments["x-dead-letter-exchange"] for one in strict} == {"test.dead"}
    assert dead.arguments == {"alternate-exchange": "test.unroutable"}


def test_own_queues_have_a_new_name_each_time() -> None:
    topology = Topology("test")

    assert (
        topology.control("executor", "host-1-1").queues[0].name
        != topology.control("executor", "host-1-1").queues[0].name
    )
    assert topology.feed("#").queues[0].name != topology.feed("#").queues[0].name


@pytest.mark.parametrize(
    ("pattern", "key", "fits"),
    [
        ("#", "", True),
        ("#", "a.b.c", True),
        ("a.*", "a.b", True),
        ("a.*", "a", False),
        ("a.*", "a.b.c", False),
        ("a.#", "a", True),
        ("a.#.c", "a.b.b.c", True),
        ("a.#.c", "a.b.b", False),
        ("*.b", "a.b", True),
        ("a.b", "a.b", True),
        ("a.b", "a.c", False),
        ("", "", False),
    ],
)
def test_topic_patterns_match_as_on_rabbitmq(pattern: str, key: str, fits: bool) -> None:
    assert topic_matches(pattern, key) == fits

"""What is on people's brokers: another argument here is refused there, so changing one is a decision.

A queue that exists cannot be given other arguments. Whoever changes this table says in CHANGELOG.md what operators do.
"""

from bus.topology import Topology


def test_queues_and_exchanges_are_declared_as_they_always_were() -> None:
    topology = Topology("e")
    core, pool = topology.core, topology.pool("executor")

    assert {one.name: (one.kind, dict(one.arguments)) for one in core.exchanges} == {
        "e.unroutable": ("fanout", {}),
        "e.work": ("topic", {}),
        "e.events": ("topic", {"alternate-exchange": "e.unroutable"}),
        "e.control": ("topic", {}),
        "e.heartbeat": ("topic", {}),
        "e.feed": ("topic", {}),
        "e.dead": ("topic", {"alternate-exchange": "e.unroutable"}),
    }
    to_dead = {
        "x-dead-letter-exchange": "e.dead",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
    assert {one.name: dict(one.arguments) for one in (*core.queues, *pool.queues)} == {
        "e.supervisor": {"x-queue-type": "quorum", "x-delivery-limit": 200} | to_dead,
        "e.dead": {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000},
        "e.unroutable": {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000},
        "e.supervisor.heartbeat": {
            "x-queue-type": "classic",
            "x-message-ttl": 15_000,
            "x-max-length": 10_000,
            "x-overflow": "drop-head",
        },
        "e.work.executor": {"x-queue-type": "quorum", "x-delivery-limit": 20, "x-message-ttl": 300_000}
        | to_dead,
    }
    assert [(one.exchange, one.pattern, one.queue) for one in (*core.bindings, *pool.bindings)] == [
        ("e.unroutable", "", "e.unroutable"),
        ("e.dead", "#", "e.dead"),
        ("e.events", "#", "e.supervisor"),
        ("e.heartbeat", "#", "e.supervisor.heartbeat"),
        ("e.work", "executor", "e.work.executor"),
    ]

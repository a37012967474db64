"""Fixtures of the broker suite: a private RabbitMQ node per session, and one world per transport for each test."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from rolecall.processes.private_node import PrivateNode, start_node
from rolecall.processes.rabbitmq_install import find_rabbitmq
from tests.broker.worlds import MemoryWorld, RabbitWorld, World


def need_rabbitmq_server() -> None:
    """Skip on a laptop without RabbitMQ; in CI that is a failure."""
    if find_rabbitmq() is not None:
        return
    if os.environ.get("CI"):
        pytest.fail("rabbitmq-server is not installed, and CI tests against it.")
    pytest.skip("rabbitmq-server is not installed.")


@pytest.fixture(scope="session")
def rabbit_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateNode]:
    """A private node that all tests share, each in an environment of its own."""
    need_rabbitmq_server()
    node = start_node(tmp_path_factory.mktemp("rabbitmq"))
    yield node
    node.stop()


@pytest.fixture
def own_node(tmp_path: Path) -> Iterator[PrivateNode]:
    """A node that a test may kill."""
    need_rabbitmq_server()
    node = start_node(tmp_path / "node")
    yield node
    start_node(tmp_path / "node").stop()


@pytest.fixture(params=["memory", "rabbitmq"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A broker with an environment of its own, and buses to it."""
    made: World
    if request.param == "memory":
        made = MemoryWorld()
    else:
        made = RabbitWorld(request.getfixturevalue("rabbit_node").url)
    yield made
    await made.close()


@pytest.fixture
async def rabbit(rabbit_node: PrivateNode) -> AsyncIterator[RabbitWorld]:
    """RabbitMQ only."""
    made = RabbitWorld(rabbit_node.url)
    yield made
    await made.close()

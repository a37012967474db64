"""Fixtures of the broker suite: a private RabbitMQ node per session, and one world per transport for each test."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from rolecall.processes.private_node import PrivateNode, running_node, start_node
from rolecall.processes.rabbitmq_install import find_rabbitmq
from tests.broker.worlds import MemoryWorld, RabbitWorld, World


@pytest.fixture(scope="session")
def rabbitmq_server() -> None:
    """Skips on a laptop without RabbitMQ; in CI that is a failure."""
    if find_rabbitmq() is not None:
        return
    if os.environ.get("CI"):
        pytest.fail("rabbitmq-server is not installed, and CI tests against it.")
    pytest.skip("rabbitmq-server is not installed.")


@pytest.fixture(scope="session")
def rabbit_node(rabbitmq_server: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateNode]:
    """A private node that all tests share, each in an environment of its own."""
    node = start_node(tmp_path_factory.mktemp("rabbitmq"))
    yield node
    node.stop()


@pytest.fixture(scope="session")
def fragile_folder(rabbitmq_server: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a node that tests may freeze and kill."""
    folder = tmp_path_factory.mktemp("fragile")
    yield folder
    node = running_node(folder)
    if node is not None:
        node.stop()


@pytest.fixture
def fragile_node(fragile_folder: Path) -> PrivateNode:
    """A live node that the test may freeze and kill; the next test gets it alive again."""
    return start_node(fragile_folder)


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


@pytest.fixture
async def fragile(fragile_node: PrivateNode) -> AsyncIterator[RabbitWorld]:
    """RabbitMQ on the node that may be killed; the test leaves it running."""
    made = RabbitWorld(fragile_node.url)
    yield made
    await made.close()

"""A private node is private, there is only ever one on a folder, and it outlives whoever started it."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bus.amqp import AmqpBus
from rolecall.processes import private_node
from rolecall.processes.node_folder import NodeFolder
from rolecall.processes.private_node import PrivateNode, running_node, start_node
from schemas.errors import SettingsError

pytestmark = pytest.mark.timeout(180)

LAUNCHER = """
import sys
from pathlib import Path
from rolecall.processes.private_node import start_node
node = start_node(Path(sys.argv[1]))
print(node.pid, node.was_running, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def folder(rabbitmq_server: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose node the tests share; each takes it as it finds it."""
    folder = tmp_path_factory.mktemp("private") / "node"
    yield folder
    left = running_node(folder)
    if left is not None:
        left.stop()


@pytest.fixture
def node(folder: Path) -> PrivateNode:
    """The live node of the folder."""
    return start_node(folder)


def test_it_listens_on_this_machine_only_and_has_no_epmd(node: PrivateNode) -> None:
    family = [psutil.Process(node.pid), *psutil.Process(node.pid).children(recursive=True)]

    listening = [
        one.laddr.ip
        for process in family
        for one in process.net_connections("inet")
        if one.status == "LISTEN"
    ]

    assert set(listening) == {"127.0.0.1"}
    assert len(listening) == 2  # AMQP and distribution
    assert not [process for process in family if "epmd" in process.name()]


def test_what_lets_one_in_is_owner_only_and_on_no_command_line(node: PrivateNode) -> None:
    secrets = NodeFolder(node.folder).secrets()

    modes = {
        str(path.relative_to(node.folder)): stat.S_IMODE(path.stat().st_mode)
        for path in (node.folder, *node.folder.iterdir(), node.folder / "home" / ".erlang.cookie")
        if path.name != "lean"
    }

    told = " ".join(psutil.Process(node.pid).cmdline())
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}
    assert secrets.password not in told
    assert secrets.cookie not in told
    assert secrets.password not in repr(node)


def test_a_second_start_adopts_the_running_node(node: PrivateNode, folder: Path) -> None:
    again = start_node(folder)

    assert again.was_running
    assert (again.pid, again.started_at, again.url) == (node.pid, node.started_at, node.url)


async def test_it_takes_the_bus(node: PrivateNode) -> None:
    bus = AmqpBus("test", node.url)

    await bus.start()

    assert bus.is_connected
    await bus.close()


def test_its_own_rabbitmqctl_reaches_it(node: PrivateNode) -> None:
    told = subprocess.run(
        [str(node.rabbitmqctl), "-q", "list_users"], capture_output=True, text=True, check=True
    )

    assert "rolecall" in told.stdout


def test_stopping_leaves_nothing_and_the_next_start_has_the_same_address(
    node: PrivateNode, folder: Path
) -> None:
    family = psutil.Process(node.pid).children(recursive=True)

    node.stop()

    assert not node.is_alive
    assert running_node(folder) is None
    assert psutil.wait_procs(family, timeout=10)[1] == []
    again = start_node(folder)
    assert not again.was_running
    assert again.url == node.url


def test_a_start_whose_port_is_taken_finds_another(node: PrivateNode, folder: Path) -> None:
    node.stop()
    record = NodeFolder(folder).record()
    assert record is not None

    with socket.create_server(("127.0.0.1", record.amqp_port)):
        again = start_node(folder)

    assert again.is_alive
    assert again.url != node.url


def test_two_starts_at_once_give_one_node(node: PrivateNode, folder: Path) -> None:
    node.stop()

    launchers = [_launcher(folder) for _ in range(4)]

    told = [_told(launcher) for launcher in launchers]
    for launcher in launchers:
        launcher.communicate()
    assert len({pid for pid, _ in told}) == 1
    assert sorted(was_running for _, was_running in told) == ["False", "True", "True", "True"]
    assert _nodes_in(folder) == [told[0][0]]


def test_a_node_whose_launcher_was_killed_is_adopted(node: PrivateNode, folder: Path) -> None:
    node.stop()
    launcher = _launcher(folder)
    pid, _ = _told(launcher)

    launcher.kill()
    launcher.communicate()

    again = start_node(folder)
    assert again.was_running
    assert again.pid == pid
    assert _nodes_in(folder) == [pid]


def test_a_node_whose_launcher_was_killed_before_it_wrote_the_pid_is_found_by_its_lock(
    node: PrivateNode, folder: Path
) -> None:
    file = folder / "node.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps(record | {"pid": None, "started_at": None}))

    again = start_node(folder)

    assert again.was_running
    assert (again.pid, again.started_at) == (node.pid, node.started_at)


def test_a_node_that_holds_the_lock_but_does_not_answer_is_replaced(
    node: PrivateNode, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_node, "ADOPT_LIMIT_S", 1.0)
    monkeypatch.setattr(private_node, "STOP_LIMIT_S", 2.0)
    os.kill(node.pid, signal.SIGSTOP)

    again = start_node(folder)

    assert not again.was_running
    assert not node.is_alive
    assert _nodes_in(folder) == [again.pid]


def test_a_process_that_got_the_pid_of_a_dead_node_is_left_alone(node: PrivateNode, folder: Path) -> None:
    node.stop()
    with subprocess.Popen(["sleep", "600"]) as bystander:
        file = folder / "node.json"
        record = json.loads(file.read_text())
        file.write_text(json.dumps(record | {"pid": bystander.pid, "started_at": node.started_at}))

        PrivateNode(folder, node.url, bystander.pid, node.started_at, was_running=True).stop()
        again = start_node(folder)

        assert bystander.poll() is None
        assert again.pid != bystander.pid
        bystander.kill()


def test_a_node_that_does_not_start_is_an_error_with_its_last_words(
    rabbitmq_server: None, tmp_path: Path
) -> None:
    files = NodeFolder(tmp_path / "node")
    files.prepare()
    files.secrets()
    (files.path / "data" / "rolecall@localhost").write_text("where its database would be")

    with pytest.raises(SettingsError, match="does not start") as raised:
        start_node(files.path)

    assert "[error]" in str(raised.value)
    assert str(files.path / "log") in str(raised.value)
    assert running_node(files.path) is None
    assert _nodes_in(files.path) == []


def test_lost_secrets_of_a_node_with_data_are_an_error_not_a_new_password(tmp_path: Path) -> None:
    files = NodeFolder(tmp_path / "node")
    files.prepare()
    (files.path / "data" / "messages").write_text("precious")

    with pytest.raises(SettingsError, match="nobody can get into"):
        files.secrets()


def _launcher(folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _told(launcher: "subprocess.Popen[str]") -> tuple[int, str]:
    assert launcher.stdout is not None
    pid, was_running = launcher.stdout.readline().split()
    return int(pid), was_running


def _nodes_in(folder: Path) -> list[int]:
    """The pids of all nodes that run in a folder."""
    return [
        process.pid
        for process in psutil.process_iter(["name", "cwd"])
        if "beam" in (process.info["name"] or "") and process.info["cwd"] == str(folder)
    ]

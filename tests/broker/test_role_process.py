"""A role as a process of its own, over RabbitMQ: it works, tells, and ends as signals and parents say."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest

from tests.broker.worlds import RabbitWorld
from tests.role_builders import KEY, LIMIT_S, action
from tests.role_stage import RoleStage

ROOT = Path(__file__).parents[2]
# The promise to users; the interpreter alone takes about 13 MB of it.
MAX_IDLE_BYTES = 80 * 1024 * 1024

Start = Callable[..., Any]


@pytest.fixture
async def stage(rabbit: RabbitWorld) -> RoleStage:
    stage = RoleStage(rabbit, await rabbit.bus("host-1-1"))
    await stage.listen()
    return stage


@pytest.fixture
def start(rabbit: RabbitWorld, tmp_path: Path) -> Start:
    """Starts the role; what it was left doing is killed at the end."""

    @asynccontextmanager
    async def start(*options: str, **environ: str) -> AsyncIterator[Process]:
        told = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "XDG_STATE_HOME": str(tmp_path),
            "ROLECALL_ENVIRONMENT": rabbit.environment,
            "ROLECALL_BROKER_URL": rabbit.url,
            "ROLECALL_PUBLIC_KEY": KEY.public_key.hex(),
        }
        command = [sys.executable, "-m", "tests.broker.counting_role", *options]
        process = await asyncio.create_subprocess_exec(*command, env=told | environ, stderr=PIPE)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    return start


async def ended(process: Process) -> int:
    async with asyncio.timeout(LIMIT_S):
        return await process.wait()


async def test_a_role_process_takes_work_and_leaves_on_sigterm(stage: RoleStage, start: Start) -> None:
    async with start() as process:
        await stage.event("role.announced")
        await stage.send_work(action(1, input={"text": "one two three"}))
        handoff = await stage.handoff()
        process.send_signal(signal.SIGTERM)
        code = await ended(process)

    assert handoff.output == {"words": 3}
    assert code == 0
    goodbye = await stage.event("role.goodbye")
    assert goodbye.body["reason"] == "received SIGTERM"


async def test_a_second_signal_ends_a_process_that_waits_for_its_work(stage: RoleStage, start: Start) -> None:
    async with start() as process:
        await stage.event("role.announced")
        await stage.send_work(action(1, input={"text": "for ever"}))
        await stage.heartbeat(lambda body: bool(body["running"]))
        process.send_signal(signal.SIGINT)
        await stage.heartbeat(lambda body: body["state"] == "draining")
        process.send_signal(signal.SIGINT)

        assert await ended(process) == 1


async def test_work_that_does_not_end_within_the_drain_limit_is_handed_back(
    stage: RoleStage, start: Start
) -> None:
    async with start("--drain-limit", "0.1") as process:
        await stage.event("role.announced")
        await stage.send_work(action(1, input={"text": "for ever"}))
        await stage.event("action.accepted")
        process.send_signal(signal.SIGTERM)
        handoff = await stage.handoff()

        assert await ended(process) == 0
    assert handoff.error is not None
    assert handoff.error.code == "worker_left"


async def test_a_process_whose_parent_is_gone_leaves(stage: RoleStage, start: Start) -> None:
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=PIPE)
    async with start("--parent-pid", str(parent.pid)) as process:
        await stage.event("role.announced")
        parent.kill()
        await parent.wait()

        assert await ended(process) == 0
    goodbye = await stage.event("role.goodbye")
    assert str(parent.pid) in goodbye.body["reason"]


async def test_a_broker_that_does_not_answer_ends_it_with_6_and_one_line(start: Start) -> None:
    async with start(ROLECALL_BROKER_URL="amqp://rolecall:s3cr3t@127.0.0.1:1/") as process:
        async with asyncio.timeout(LIMIT_S):
            _, said = await process.communicate()

    (line,) = said.decode().splitlines()
    assert process.returncode == 6
    assert "127.0.0.1:1" in line
    assert "rolecall doctor" in line
    assert "s3cr3t" not in line


async def test_the_log_tells_the_story_of_an_action_with_its_ids(
    stage: RoleStage, start: Start, tmp_path: Path
) -> None:
    async with start() as process:
        await stage.event("role.announced")
        await stage.send_work(action(1))
        await stage.handoff()
        process.send_signal(signal.SIGTERM)
        await ended(process)

    (file,) = (tmp_path / "rolecall" / stage.bus.environment / "logs").iterdir()
    records = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [one["action"] for one in records] == [
        "process_started",
        "role_announced",
        "work_accepted",
        "work_ended",
        "role_draining",
        "role_left",
    ]
    for one in records[2:4]:
        assert (one["task"], one["step"], one["attempt"], one["lane"]) == (
            action().task,
            "count/1",
            1,
            "standing",
        )


async def test_an_idle_process_is_small_and_shows_its_measures_on_request(
    stage: RoleStage, start: Start
) -> None:
    async with start("--metrics-port", "0", "--log-level", "info") as process:
        assert process.stderr is not None
        async with asyncio.timeout(LIMIT_S):
            line = await process.stderr.readline()
        port = line.decode().split("127.0.0.1:")[1].split("/")[0]
        await stage.send_work(action(1))
        await stage.handoff()
        await stage.heartbeat(lambda body: not body["running"])
        resident = psutil.Process(process.pid).memory_info().rss

        def read() -> str:
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT_S) as answer:
                return str(answer.read().decode())

        measures = await asyncio.to_thread(read)

    assert resident <= MAX_IDLE_BYTES
    assert 'rolecall_attempts_total{contract="count.words@1",outcome="no_change"} 1.0' in measures


async def test_a_killed_process_leaves_unaccepted_work_to_the_next(stage: RoleStage, start: Start) -> None:
    async with start() as process:
        await stage.event("role.announced")
        await stage.send_work(action(1, input={"text": "for ever"}))
        await stage.event("action.accepted")
        await stage.send_work(action(2))
        process.kill()
        await ended(process)
        async with start():
            handoff = await stage.handoff()

    assert handoff.action_id == "action-2"

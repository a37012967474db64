"""How a process is told to stop."""

import asyncio
import os
import signal
import subprocess
import sys

from bus.stopping import StopSignal, parent_watched, signals_to
from tests.role_builders import LIMIT_S


async def test_the_first_signal_drains_and_the_second_stops_at_once() -> None:
    stop = StopSignal()

    async with asyncio.timeout(LIMIT_S):
        with signals_to(stop):
            os.kill(os.getpid(), signal.SIGTERM)
            await stop.wait_draining()
            first = (stop.is_draining, stop.is_at_once)
            os.kill(os.getpid(), signal.SIGINT)
            await stop.wait_at_once()

    assert first == (True, False)
    assert stop.reason == "received SIGTERM"


async def test_a_process_drains_when_its_parent_is_gone() -> None:
    stop = StopSignal()
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=subprocess.PIPE)

    async with asyncio.timeout(LIMIT_S), parent_watched(parent.pid, stop, poll_s=0.01):
        alive = stop.is_draining
        parent.kill()
        await stop.wait_draining()
    await parent.wait()

    assert not alive
    assert str(parent.pid) in stop.reason


async def test_a_parent_that_is_gone_already_counts_as_gone() -> None:
    stop = StopSignal()

    async with asyncio.timeout(LIMIT_S), parent_watched(2**22 + 1, stop):
        await stop.wait_draining()


async def test_without_a_parent_nothing_is_watched() -> None:
    stop = StopSignal()

    async with parent_watched(None, stop):
        await asyncio.sleep(0)

    assert not stop.is_draining

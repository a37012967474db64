"""The frame of a process: how it ends, with which exit code, and what it says."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import bus.program
from bus.api import Bus, TopologyMismatchError
from bus.instance import instance_name
from bus.memory import MemoryBus
from bus.memory_broker import MemoryBroker
from bus.program import Program, run_program, run_role
from bus.settings import RoleSettings
from bus.workers import InLoopWorkers
from schemas.action import Action
from schemas.errors import BrokerUnreachableError, SettingsError
from schemas.handoff import Handoff
from tests.role_builders import SPEC, done


class SlowToStart(MemoryBus):
    """A bus whose broker is not reachable at first."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        super().__init__(MemoryBroker(), "test")
        self.tries = 0
        self._failures = failures
        self._error = error or BrokerUnreachableError("The broker does not answer.", suggestion="Start it.")

    async def start(self) -> None:
        self.tries += 1
        if self.tries <= self._failures:
            raise self._error
        await super().start()


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., int]:
    def run(
        main: Callable[[Program], Awaitable[None]], *, bus: Callable[[], Bus] | None = None, wait_s: float = 0
    ) -> int:
        settings = RoleSettings(
            environment="test", state_dir=tmp_path, role="counter", wait_for_broker_s=wait_s
        )
        make = bus or (lambda: SlowToStart(0))
        return run_program(settings, main, make_bus=lambda _settings, _instance: make())

    return run


async def leave_when_told(program: Program) -> None:
    await program.stop.wait_draining()


async def nothing(_program: Program) -> None:
    pass


def test_a_program_that_ends_by_itself_ends_well(run: Callable[..., int]) -> None:
    assert run(nothing) == 0


def test_a_drained_process_exits_with_0(run: Callable[..., int]) -> None:
    async def main(program: Program) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await program.stop.wait_draining()

    assert run(main) == 0


def test_a_process_stopped_at_once_exits_with_1(run: Callable[..., int]) -> None:
    async def main(program: Program) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await program.stop.wait_draining()
        os.kill(os.getpid(), signal.SIGINT)
        await program.stop.wait_at_once()

    assert run(main) == 1


def test_an_unreachable_broker_at_the_start_exits_with_6_and_says_what_to_do(
    run: Callable[..., int], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(nothing, bus=lambda: SlowToStart(99)) == 6
    assert "The broker does not answer. Start it." in capfd.readouterr().err


def test_a_broker_is_waited_for_if_told_so(run: Callable[..., int]) -> None:
    bus = SlowToStart(2)

    assert run(nothing, bus=lambda: bus, wait_s=60) == 0
    assert bus.tries == 3


def test_a_broker_that_is_being_started_is_no_alarm(
    run: Callable[..., int], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(nothing, bus=lambda: SlowToStart(3), wait_s=60) == 0
    assert "broker" not in capfd.readouterr().err


def test_a_broker_that_stays_away_longer_is_told_once(
    run: Callable[..., int], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus.program, "START_GRACE_S", 0.0)

    assert run(nothing, bus=lambda: SlowToStart(3), wait_s=60) == 0
    assert capfd.readouterr().err.count("! Waiting for the broker: The broker does not answer.") == 1


def test_a_broker_that_stays_away_is_given_up_after_the_wait(run: Callable[..., int]) -> None:
    bus = SlowToStart(99)

    assert run(nothing, bus=lambda: bus, wait_s=0.3) == 6
    assert bus.tries >= 2


def test_waiting_for_the_broker_can_be_stopped(run: Callable[..., int]) -> None:
    class Interrupted(SlowToStart):
        async def start(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            await super().start()

    assert run(nothing, bus=lambda: Interrupted(99), wait_s=3600) == 0


def test_a_mismatch_of_the_topology_is_not_waited_for(run: Callable[..., int]) -> None:
    bus = SlowToStart(99, TopologyMismatchError("The queue has other arguments."))

    assert run(nothing, bus=lambda: bus, wait_s=3600) == 1
    assert bus.tries == 1


def test_a_wrong_setting_found_late_exits_with_2(run: Callable[..., int]) -> None:
    async def main(_program: Program) -> None:
        raise SettingsError("No hub is known.")

    assert run(main) == 2


def test_an_error_inside_a_task_group_still_counts(run: Callable[..., int]) -> None:
    async def fail() -> None:
        raise SettingsError("No hub is known.")

    async def main(_program: Program) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())

    assert run(main) == 2


def test_a_fault_of_ours_exits_with_1_and_leaves_its_traceback_in_the_log(
    run: Callable[..., int], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def main(_program: Program) -> None:
        raise ZeroDivisionError("at amqp://u:s3cr3t@h/")

    assert run(main) == 1
    (file,) = (tmp_path / "logs").iterdir()
    assert "Traceback" in file.read_text()
    assert "s3cr3t" not in file.read_text() + capfd.readouterr().err


def test_a_role_without_a_broker_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("ROLECALL_ENVIRONMENT", "test")
    monkeypatch.delenv("ROLECALL_BROKER_URL", raising=False)

    async def handle(action: Action, _note: object) -> Handoff:
        return done(action)

    code = run_role("counter", lambda _settings: (SPEC, InLoopWorkers(handle)), [])

    assert code == 2
    assert "rolecall up" in capfd.readouterr().err


def test_a_bad_environment_name_is_said_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROLECALL_ENVIRONMENT", "a.b")

    async def handle(action: Action, _note: object) -> Handoff:
        return done(action)

    code = run_role("counter", lambda _settings: (SPEC, InLoopWorkers(handle)), [])

    said = capfd.readouterr().err
    assert code == 2
    assert said.startswith("counter: 'a.b' cannot be the name of an environment.")
    assert said.count("\n") == 1


def test_an_instance_is_named_by_host_pid_and_start() -> None:
    assert instance_name() == instance_name()
    assert str(os.getpid()) in instance_name().split("-")

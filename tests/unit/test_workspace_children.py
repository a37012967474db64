"""A warm child per slot: answers, deaths of every kind, and cancelling that leaves nothing alive."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from schemas.action import Action
from schemas.errors import ContractError, SettingsError, WorkerLostError, WorkspaceError
from schemas.handoff import Handoff
from tests.unit.workspace_repos import root_commit
from workspace.children import ChildSettings, ChildWorkers, WorkFaultError
from workspace.hub import Hub
from workspace.job import SandboxMode
from workspace.killing import MARK, kill_orphans
from workspace.spill import unspill

WORK = "tests.unit.workspace_work:handle"
LIMIT_S = 30


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub.create(tmp_path / "hub.git") as hub:
        yield hub


@pytest.fixture
def base(hub: Hub) -> str:
    return root_commit(hub, {"a.py": b"1\n"})


@pytest.fixture
def settings(hub: Hub, tmp_path: Path) -> ChildSettings:
    return ChildSettings(
        work=WORK,
        hub=hub.location,
        scratch=tmp_path / "scratch",
        cache=tmp_path / "cache",
        options={"key": "value"},
    )


@pytest.fixture
async def workers(settings: ChildSettings) -> AsyncIterator[ChildWorkers]:
    async with ChildWorkers(settings, 2) as workers:
        yield workers


@pytest.fixture
def action(base: str) -> Callable[..., Action]:
    def action(do: str, **given: Any) -> Action:
        return Action(
            task="t",
            action_id="a",
            step="s",
            contract="test.work@1",
            input={"do": do, **given},
            base=base,
            attempt=1,
            nonce="n" * 16,
            pool="p",
            environment="e",
            time_limit_s=60,
        )

    return action


def ignore(note: str) -> None:
    pass


async def pid_of(workers: ChildWorkers, action: Action, slot: int = 0) -> int:
    handoff = await workers.run(slot, action, ignore)
    return int(handoff.output["pid"])


async def test_an_action_goes_in_and_notes_and_a_handoff_come_out(
    workers: ChildWorkers, action: Callable[..., Action], settings: ChildSettings
) -> None:
    notes: list[str] = []

    handoff = await workers.run(0, action("surroundings"), notes.append)

    assert notes == ["doing surroundings"]
    told = handoff.output
    assert (told["files"], told["sandbox"], told["options"]) == (["a.py"], "bubblewrap", {"key": "value"})
    assert told["cache"] == str(settings.cache)
    assert told["scratch"].startswith(str(settings.scratch / "slot-0"))
    assert list((settings.scratch / "slot-0").iterdir()) == []


async def test_the_child_stays_warm_from_action_to_action(
    workers: ChildWorkers, action: Callable[..., Action]
) -> None:
    pids = {await pid_of(workers, action("nothing")) for _ in range(3)}

    assert len(pids) == 1
    assert pids != {os.getpid()}


async def test_slots_work_at_the_same_time(
    workers: ChildWorkers, action: Callable[..., Action], tmp_path: Path
) -> None:
    pair = (action("wait_for", folder=str(tmp_path), me=me, other=other) for me, other in ("xy", "yx"))

    async with asyncio.timeout(LIMIT_S):
        done = await asyncio.gather(*(workers.run(slot, one, ignore) for slot, one in enumerate(pair)))

    assert len({handoff.output["pid"] for handoff in done}) == 2


async def test_a_child_is_replaced_after_its_share_of_actions(
    settings: ChildSettings, action: Callable[..., Action]
) -> None:
    async with ChildWorkers(settings, 1, recycle_after=2) as workers:
        pids = [await pid_of(workers, action("nothing")) for _ in range(4)]

        assert pids[0] == pids[1] != pids[2] == pids[3]
        assert not psutil.pid_exists(pids[0])


async def test_a_child_that_grew_too_large_is_replaced(
    settings: ChildSettings, action: Callable[..., Action]
) -> None:
    async with ChildWorkers(settings, 1, recycle_over_bytes=90 * 2**20) as workers:
        before = [await pid_of(workers, action("nothing")) for _ in range(2)]
        large = await pid_of(workers, action("grow"))
        after = await pid_of(workers, action("nothing"))

        assert before[0] == before[1] == large != after


async def test_a_large_field_of_a_handoff_has_gone_to_the_hub(
    workers: ChildWorkers, action: Callable[..., Action], hub: Hub
) -> None:
    handoff = await workers.run(0, action("large"), ignore)

    assert handoff.output == {}
    assert len(unspill(handoff, hub).output["text"]) == 200_000


async def test_what_a_work_function_prints_does_not_disturb_its_answer(
    workers: ChildWorkers, action: Callable[..., Action]
) -> None:
    assert isinstance(await workers.run(0, action("binary_noise"), ignore), Handoff)


async def test_no_setting_of_ours_reaches_the_work_function(
    settings: ChildSettings, action: Callable[..., Action], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLECALL_BROKER_URL", "amqp://user:secret@host")
    async with ChildWorkers(settings, 1) as workers:
        assert (await workers.run(0, action("surroundings"), ignore)).output["settings"] == [MARK]


# ---- errors and deaths -------------------------------------------------------------------------------------------


async def test_errors_of_ours_arrive_as_the_class_that_says_who_must_act(
    workers: ChildWorkers, action: Callable[..., Action]
) -> None:
    with pytest.raises(ContractError, match=r"The rule is wrong\. Mend it\."):
        await workers.run(0, action("refuse"), ignore)
    with pytest.raises(WorkspaceError, match=r"git fetch failed \(128\)"):
        await workers.run(0, action("git_fault"), ignore)


async def test_a_fault_of_the_work_function_ends_the_action_and_not_the_child(
    workers: ChildWorkers, action: Callable[..., Action]
) -> None:
    before = await pid_of(workers, action("nothing"))

    with pytest.raises(WorkFaultError, match="ZeroDivisionError: a fault of the engine"):
        await workers.run(0, action("fault"), ignore)

    assert await pid_of(workers, action("nothing")) == before


@pytest.mark.parametrize(
    ("do", "how", "said"), [("exit", "exit code 7", "last words"), ("segfault", "signal 11", "printed by")]
)
async def test_a_child_that_dies_ends_its_action_and_the_next_one_has_a_fresh_child(
    workers: ChildWorkers,
    action: Callable[..., Action],
    settings: ChildSettings,
    do: str,
    how: str,
    said: str,
) -> None:
    before = await pid_of(workers, action("nothing"))

    with pytest.raises(WorkerLostError, match=how) as lost:
        await workers.run(0, action(do), ignore)

    assert said in lost.value.last_lines
    assert await pid_of(workers, action("nothing")) != before
    assert list((settings.scratch / "slot-0").iterdir()) == []


async def test_a_child_that_is_killed_from_outside_ends_its_action(
    workers: ChildWorkers, action: Callable[..., Action], tmp_path: Path
) -> None:
    pid = await pid_of(workers, action("nothing"))
    running = asyncio.create_task(workers.run(0, action("hang", folder=str(tmp_path)), ignore))
    names = ("child", "session", "tree/job")
    await until(lambda: all((tmp_path / name).exists() for name in names))

    os.kill(pid, signal.SIGKILL)

    with pytest.raises(WorkerLostError, match="signal 9"):
        await running
    assert all_still(tmp_path, *names)


async def test_a_child_that_died_while_idle_is_replaced_unnoticed(
    workers: ChildWorkers, action: Callable[..., Action]
) -> None:
    pid = await pid_of(workers, action("nothing"))
    os.kill(pid, signal.SIGKILL)
    await until(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)

    assert await pid_of(workers, action("nothing")) != pid


async def test_a_work_function_that_cannot_be_imported_is_a_lost_worker_with_the_reason(
    settings: ChildSettings, action: Callable[..., Action]
) -> None:
    async with ChildWorkers(replace(settings, work="tests.unit.no_such_module:handle"), 1) as workers:
        for _ in range(2):
            with pytest.raises(WorkerLostError) as lost:
                await workers.run(0, action("nothing"), ignore)
            assert "No module named 'tests.unit.no_such_module'" in lost.value.last_lines


async def test_a_hub_that_is_not_there_yet_is_looked_for_again(
    settings: ChildSettings, action: Callable[..., Action], hub: Hub
) -> None:
    away = hub.repository.with_name("away.git")
    hub.repository.rename(away)
    async with ChildWorkers(settings, 1) as workers:
        with pytest.raises(SettingsError, match="no hub at"):
            await workers.run(0, action("nothing"), ignore)
        away.rename(hub.repository)

        assert isinstance(await workers.run(0, action("nothing"), ignore), Handoff)


# ---- cancelling and closing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(SandboxMode))
async def test_cancelling_kills_children_sessions_jobs_and_daemons_before_it_returns(
    settings: ChildSettings, action: Callable[..., Action], tmp_path: Path, mode: SandboxMode
) -> None:
    async with ChildWorkers(replace(settings, sandbox=mode), 1) as workers:
        running = asyncio.create_task(workers.run(0, action("hang", folder=str(tmp_path)), ignore))
        names = ("child", "session", "tree/job")
        await until(lambda: all((tmp_path / name).exists() for name in names))

        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        assert all_still(tmp_path, *names)
        assert list((settings.scratch / "slot-0").iterdir()) == []
        assert await pid_of(workers, action("nothing")) > 0


async def test_cancelling_twice_still_kills_first(
    workers: ChildWorkers, action: Callable[..., Action], tmp_path: Path
) -> None:
    running = asyncio.create_task(workers.run(0, action("hang", folder=str(tmp_path)), ignore))
    await until(lambda: (tmp_path / "tree/job").exists())

    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert all_still(tmp_path, "child", "session", "tree/job")


async def test_closing_leaves_no_process_and_no_folder(
    settings: ChildSettings, action: Callable[..., Action], tmp_path: Path
) -> None:
    workers = ChildWorkers(settings, 2)
    running = asyncio.create_task(workers.run(0, action("hang", folder=str(tmp_path)), ignore))
    await until(lambda: (tmp_path / "tree/job").exists())

    await workers.close()

    with pytest.raises(WorkerLostError):
        await running
    assert all_still(tmp_path, "child", "session", "tree/job")
    assert not settings.scratch.exists()
    assert [p for p in psutil.Process().children() if "workspace.child" in p.cmdline()] == []


_PARENT = """
import asyncio, sys
from pathlib import Path
from schemas.action import Action
from workspace.children import ChildSettings, ChildWorkers
from workspace.job import SandboxMode
from workspace.killing import MARK, kill_orphans

hub, folder, packed = sys.argv[1:]
async def main():
    settings = ChildSettings("tests.unit.workspace_work:handle", hub, Path(folder, "scratch"), Path(folder, "cache"))
    await ChildWorkers(settings, 1).run(0, Action.model_validate_json(packed), lambda note: None)
asyncio.run(main())
"""


async def test_children_and_their_jobs_end_when_the_role_is_killed(
    hub: Hub, action: Callable[..., Action], tmp_path: Path
) -> None:
    packed = action("hang", folder=str(tmp_path)).model_dump_json()
    role = _start_role(hub.location, str(tmp_path), packed)
    names = ("child", "session", "tree/job")
    await until(lambda: all((tmp_path / name).exists() for name in names))
    children = psutil.Process(role.pid).children()

    role.kill()
    role.wait()

    await until(lambda: not any(child.is_running() for child in children))
    await until(lambda: all_still(tmp_path, "tree/job"))
    kill_orphans()  # as the next process of ours does at its start
    assert all_still(tmp_path, *names)


def _start_role(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", _PARENT, *arguments])


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for a fact, with a limit."""
    await asyncio.to_thread(_until, is_so)


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def all_still(folder: Path, *names: str) -> bool:
    """True if none of these files grows over the time in which its writer, if it lived, would have written often."""
    sizes = [(folder / name).stat().st_size for name in names]
    for _ in range(3):
        subprocess.run([sys.executable, "-c", ""], check=True)
    return sizes == [(folder / name).stat().st_size for name in names]

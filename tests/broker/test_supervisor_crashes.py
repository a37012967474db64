"""The supervisor crashes, and starts again on the same journal: nothing is lost, done twice, or different."""

import asyncio
from pathlib import Path

import pytest

from schemas.action import Action
from schemas.handoff import Handoff
from schemas.words import TaskStatus
from supervisor.house import opened_house
from supervisor.journal.journal import Group
from supervisor.journal.report import report
from tests.broker.quick_time import quick_time
from tests.small_answers import OnNote, default_answers
from tests.small_fleet import CrashPoints, Fleet, recipe, small_fleet
from tests.unit.workspace_repos import files_at

__all__ = ["quick_time"]

SWAP = recipe(("one", "eins"), ("two", "zwei"))
LANDED = {"a.py": b"eins = 1\n", "b.py": b"eins = 2\nzwei = 3\n", "c.py": b"zwei = 4\n", "d.txt": b"words\n"}


async def landed(fleet: Fleet) -> str:
    """The head of a task that was run to its end."""
    task = await fleet.submit(SWAP)
    assert await fleet.ended(task) == TaskStatus.COMPLETED
    with fleet.reading() as reader:
        told = report(reader, task)
    assert [(rule.status, rule.files, rule.sites) for rule in told.rules] == [("landed", 2, 2)] * 2
    assert fleet.head(task) == told.head
    assert files_at(fleet.hub, told.head) == LANDED
    return told.head


async def has_recorded(fleet: Fleet, task: str, count: int) -> None:
    """Wait until the journal holds so many events of a task."""
    with fleet.reading() as reader:
        await fleet.wait(lambda: sum(1 for _ in reader.events(task)) >= count)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The head that the same task gets when nothing goes wrong."""

    async def quiet() -> str:
        async with small_fleet(tmp_path_factory.mktemp("undisturbed")) as fleet:
            return await landed(fleet)

    return asyncio.run(quiet())


POINTS = [(where, first) for where in ("before_writes", "after_writes", "before_acks") for first in (1, 2, 4)]


@pytest.mark.usefixtures("quick_time")
@pytest.mark.parametrize(("where", "first"), POINTS)
async def test_wherever_it_crashes_the_same_head_is_reached(
    tmp_path: Path, undisturbed: str, where: str, first: int
) -> None:
    points = CrashPoints()
    setattr(points, where, frozenset(range(first, 400, 5)))
    async with small_fleet(tmp_path, crashes=points) as fleet:
        head = await landed(fleet)

    assert head == undisturbed
    assert fleet.restarts >= 3


@pytest.mark.usefixtures("quick_time")
async def test_killed_again_and_again_it_comes_to_the_same_head(tmp_path: Path, undisturbed: str) -> None:
    async with small_fleet(tmp_path) as fleet:
        task = await fleet.submit(SWAP)
        for count in (3, 8, 15, 21, 30, 44, 60):
            await has_recorded(fleet, task, count)
            await fleet.kill_supervisor()
        assert await fleet.ended(task) == TaskStatus.COMPLETED

        assert fleet.head(task) == undisturbed
        assert fleet.restarts == 7


@pytest.mark.usefixtures("quick_time")
async def test_stopped_in_order_and_started_again_it_goes_on(tmp_path: Path, undisturbed: str) -> None:
    async with small_fleet(tmp_path) as fleet:
        task = await fleet.submit(SWAP)
        await has_recorded(fleet, task, 25)
        await fleet.stop_supervisor()
        fleet.start_supervisor()

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        assert fleet.head(task) == undisturbed


async def test_what_was_asked_while_no_supervisor_ran_is_done_once_one_does(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        await fleet.stop_supervisor()
        run, canceled = await fleet.submit(SWAP), await fleet.submit(SWAP)
        await fleet.cancel(canceled)
        fleet.start_supervisor()

        assert await fleet.ended(run) == TaskStatus.COMPLETED
        assert await fleet.ended(canceled) == TaskStatus.CANCELED


@pytest.mark.usefixtures("quick_time")
async def test_what_workers_hand_in_while_no_supervisor_runs_is_not_done_again(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        task = await fleet.submit(recipe(("one", "eins")))
        await fleet.wait(lambda: bool(fleet.ran))
        await fleet.kill_supervisor()

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        assert all(attempt == 1 for _, attempt in fleet.ran)


@pytest.mark.usefixtures("quick_time")
async def test_an_ended_task_still_answers_after_a_restart_and_never_begins_again(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        task = await fleet.submit(SWAP)
        assert await fleet.ended(task) == TaskStatus.COMPLETED
        await fleet.kill_supervisor()

        ran = len(fleet.ran)
        delivered = {"branch": "rolecall/test", "commit": fleet.head(task), "repository": "repo"}
        with fleet.reading() as reader:
            request = next(iter(reader.events(task))).event
            await fleet.say("task.submitted", {"request": request.model_dump()["request"]}, task)
            await fleet.say("task.delivered", delivered, task)
            await fleet.wait(lambda: report(reader, task).delivered == "rolecall/test")
            await fleet.kill_supervisor()
            other = await fleet.submit(SWAP)
            assert await fleet.ended(other) == TaskStatus.COMPLETED
            told = report(reader, task)

        assert (told.status, told.delivered) == (TaskStatus.COMPLETED, "rolecall/test")
        assert [step for step, _ in fleet.ran[:ran]].count("plan.r1") == 1


@pytest.mark.usefixtures("quick_time")
async def test_a_task_whose_record_is_broken_stops_nobody_else(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        fleet.answers["plan.draft"] = never
        broken = await fleet.submit(SWAP)
        await has_recorded(fleet, broken, 3)
        await fleet.stop_supervisor()
        with opened_house(fleet.state_dir) as house:
            row = {"task": broken, "at": 1, "name": "TaskPondered", "data": b"{}", "message_id": None}
            house.journal.write(Group(events=[row]))
        fleet.answers = default_answers(fleet)
        fleet.start_supervisor()
        await fleet.cancel(broken)

        await landed(fleet)
        with fleet.reading() as reader:
            reasons = {one.reason for one in reader.dead() if one.task == broken}
        assert reasons == {"its task's record makes no state: KeyError: 'TaskPondered'"}


async def never(action: Action, note: OnNote) -> Handoff:
    """A planner that is still thinking when the supervisor stops."""
    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

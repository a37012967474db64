"""The broker goes away and comes back, queues vanish, messages come twice: the work goes on and comes out the same."""

import asyncio
from pathlib import Path

import pytest

from bus.api import Exchange
from bus.codec import encode
from bus.memory_broker import Stored
from schemas.action import Action
from schemas.envelope import Sender
from schemas.handoff import Handoff
from schemas.messages import ActionAccepted, ActionHandoff
from schemas.words import TaskStatus
from supervisor.journal.report import report
from tests.broker.quick_time import quick_time
from tests.small_answers import OnNote
from tests.small_fleet import Fleet, recipe, small_fleet
from tests.unit.workspace_repos import files_at

__all__ = ["quick_time"]

SWAP = recipe(("one", "eins"), ("two", "zwei"))
pytestmark = pytest.mark.usefixtures("quick_time")


async def has_run(fleet: Fleet, count: int) -> None:
    await fleet.wait(lambda: len(fleet.ran) >= count)


async def test_the_broker_may_stop_and_start_again_in_the_middle_of_everything(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        task = await fleet.submit(SWAP)
        for count in (1, 4, 7, 10):
            await has_run(fleet, count)
            fleet.broker.stop()
            await asyncio.sleep(0)
            fleet.broker.start()

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        assert files_at(fleet.hub, fleet.head(task))["b.py"] == b"eins = 2\nzwei = 3\n"


async def test_an_outage_costs_no_attempt_of_work_that_goes_on_meanwhile(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        held, go_on = asyncio.Event(), asyncio.Event()
        change = fleet.answers["rewrite.pattern"]

        async def slow(action: Action, note: OnNote) -> Handoff:
            held.set()
            await go_on.wait()
            return await change(action, note)

        fleet.answers["rewrite.pattern"] = slow
        fleet.shards = 1
        task = await fleet.submit(recipe(("one", "eins")))
        await held.wait()
        fleet.broker.stop()
        await fleet.wait(lambda: fleet.lease_clock_stands)
        go_on.set()
        fleet.broker.start()

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        with fleet.reading() as reader:
            assert report(reader, task).retries == 0


async def test_a_work_queue_that_is_deleted_is_declared_again_and_its_work_comes_again(
    tmp_path: Path,
) -> None:
    async with small_fleet(tmp_path, pools=("planner", "reviewer", "tester")) as fleet:
        await fleet.start_role("executor", name="executor-first")
        task = await fleet.submit(SWAP)
        await has_run(fleet, 1)
        fleet.broker.delete(fleet.topology.work("executor"))

        assert await fleet.ended(task) == TaskStatus.COMPLETED


async def test_a_submission_that_comes_twice_is_one_task(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        task = await fleet.submit(SWAP)
        with fleet.reading() as reader:
            await fleet.wait(lambda: bool(reader.tasks()))
            request = next(iter(reader.events(task))).event.model_dump()["request"]
            again = await fleet.say("task.submitted", {"request": request}, task)
            raw = encode(again)
            for _ in range(3):  # the same envelope, as after a publish that was not confirmed
                fleet.throw(raw)
            assert await fleet.ended(task) == TaskStatus.COMPLETED

            accepted = [one for one in reader.events(task) if type(one.event).__name__ == "TaskAccepted"]
            assert (len(accepted), len(reader.tasks())) == (1, 1)


async def test_messages_that_come_twice_change_nothing(tmp_path: Path) -> None:
    """Every acceptance and every handoff is on the bus three times, twice under its own id."""
    async with small_fleet(tmp_path) as fleet:
        events = fleet.topology.exchange(Exchange.EVENTS)
        publish = fleet.broker.publish

        def thrice(exchange: str, message: Stored) -> bool:
            routed = publish(exchange, message)
            if exchange == events and message.key.startswith("action."):
                publish(exchange, message)
                publish(exchange, message)
            return routed

        fleet.broker.publish = thrice  # type: ignore[method-assign]
        task = await fleet.submit(SWAP)

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        with fleet.reading() as reader:
            told = report(reader, task)
        assert (told.set_aside, told.retries, told.unlanded) == (0, 0, ())
        assert len(fleet.ran) == told.attempts


async def test_a_handoff_under_a_new_id_is_set_aside_with_a_remark(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        seen: list[Action] = []
        change = fleet.answers["rewrite.pattern"]

        async def noted(action: Action, note: OnNote) -> Handoff:
            seen.append(action)
            return await change(action, note)

        fleet.answers["rewrite.pattern"] = noted
        task = await fleet.submit(SWAP)
        assert await fleet.ended(task) == TaskStatus.COMPLETED

        late = await change(seen[0], lambda note: None)
        worker = Sender(role="executor", instance="executor-1", version="1")
        accepted = ActionAccepted(action_id=late.action_id, attempt=late.attempt, nonce=late.nonce)
        await fleet.say("action.accepted", accepted.model_dump(), task, sender=worker)
        await fleet.say("action.handoff", ActionHandoff(handoff=late).model_dump(), task, sender=worker)

        with fleet.reading() as reader:
            await fleet.wait(lambda: report(reader, task).set_aside == 1)
            assert report(reader, task).status is TaskStatus.COMPLETED

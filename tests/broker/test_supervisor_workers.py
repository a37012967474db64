"""Workers come, go, die and disagree; users cancel and ask for what nobody serves."""

import asyncio
from pathlib import Path

import pytest

from schemas.action import Action
from schemas.contracts import ContractDocument
from schemas.handoff import Handoff
from schemas.task import Limits
from schemas.words import Outcome, TaskStatus
from supervisor.journal.report import report
from supervisor.journal.trace import trace
from tests.broker.quick_time import quick_time
from tests.small_answers import OnNote, change_files, handoff
from tests.small_fleet import Fleet, recipe, small_fleet

__all__ = ["quick_time"]

SWAP = recipe(("one", "eins"), ("two", "zwei"))
ONE = recipe(("one", "eins"))
pytestmark = pytest.mark.usefixtures("quick_time")


class Holding:
    """Changes wait in a worker's hands until the test lets them go."""

    def __init__(self, fleet: Fleet) -> None:
        self.held: list[Action] = []
        self.stopped: list[Action] = []
        self.go_on = asyncio.Event()
        self._honest = fleet.answers["rewrite.pattern"]
        self._fleet = fleet
        fleet.answers["rewrite.pattern"] = self._answer

    async def begun(self, count: int = 1) -> None:
        await self._fleet.wait(lambda: len(self.held) >= count)

    async def _answer(self, action: Action, note: OnNote) -> Handoff:
        self.held.append(action)
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.stopped.append(action)
            raise
        return await self._honest(action, note)


def plug_in(name: str = "team.header", **changes: object) -> ContractDocument:
    known: dict[str, object] = {
        "name": name,
        "version": 1,
        "title": "Replace words",
        "description": "As rewrite.pattern, by a plug-in.",
        "pool": "team",
        "changes": "tree",
        "time_limit_s": {"default": 60, "longest": 60},
        "side_effects": "None.",
        "shardable": "file",
        "input": {
            "type": "object",
            "required": ["match", "replace"],
            "properties": {"match": {}, "replace": {}},
        },
        "output": {"type": "object"},
    }
    return ContractDocument.model_validate(known | changes)


def plug_in_recipe(name: str = "team.header") -> dict[str, object]:
    return {
        "recipe": "demo",
        "rules": [{"id": "swap", "contract": f"{name}@1", "input": {"match": "one", "replace": "eins"}}],
    }


# ---- dying, leaving ----------------------------------------------------------------------------------------------


async def test_work_of_a_worker_that_dies_goes_to_another_one(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        fleet.shards = 1
        holding = Holding(fleet)
        task = await fleet.submit(ONE)
        await holding.begun()
        await fleet.kill_role("executor-1")
        holding.go_on.set()
        await fleet.start_role("executor", name="executor-after")

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        with fleet.reading() as reader:
            told = trace(reader, task)
        (change,) = [one for one in told.actions if one.kind == "change"]
        assert [(one.attempt, one.instance, one.outcome) for one in change.attempts] == [
            (1, "executor-1", "lost"),
            (2, "executor-after", "done"),
        ]
        assert change.attempts[0].reason == "lost: the worker was lost: its process was lost"


async def test_a_worker_that_leaves_in_order_costs_no_attempt(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        fleet.shards = 1
        holding = Holding(fleet)
        task = await fleet.submit(ONE)
        await holding.begun()
        leaving = asyncio.create_task(fleet.drain_role("executor-1"))
        await fleet.wait(
            lambda: fleet.supervisor is not None and not fleet.supervisor.fleet.slots("executor")
        )
        holding.go_on.set()
        await leaving
        await fleet.start_role("executor")

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        with fleet.reading() as reader:
            assert report(reader, task).retries == 0


async def test_every_worker_may_be_killed_once_and_the_commits_are_the_same(tmp_path: Path) -> None:
    async with small_fleet(tmp_path / "quiet") as fleet:
        quiet = await fleet.submit(SWAP)
        assert await fleet.ended(quiet) == TaskStatus.COMPLETED
        undisturbed = fleet.head(quiet)
    async with small_fleet(tmp_path / "disturbed") as fleet:
        task = await fleet.submit(SWAP)
        for number, pool in enumerate(("planner", "executor", "reviewer", "tester")):
            await fleet.wait(lambda number=number: len(fleet.ran) > 2 * number)  # type: ignore[misc]
            await fleet.kill_role(f"{pool}-{number}")
            await fleet.start_role(pool, name=f"{pool}-again")

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        assert fleet.head(task) == undisturbed


# ---- nobody there ------------------------------------------------------------------------------------------------


async def test_without_a_role_the_task_waits_and_says_for_whom_and_goes_on_when_it_comes(
    tmp_path: Path,
) -> None:
    async with small_fleet(tmp_path, pools=("planner", "executor", "tester")) as fleet:
        task = await fleet.submit(ONE)
        with fleet.reading() as reader:
            await fleet.wait(
                lambda: bool(reader.tasks()) and reader.progress(task).waiting_for == ("reviewer",)
            )
            assert reader.progress(task).sentence == "waiting for a process that serves reviewer"
            await fleet.start_role("reviewer")

            assert await fleet.ended(task) == TaskStatus.COMPLETED
            assert reader.progress(task).waiting_for == ()


async def test_without_a_role_the_task_ends_after_the_limit_with_that_reason(tmp_path: Path) -> None:
    async with small_fleet(tmp_path, pools=("planner", "reviewer", "tester")) as fleet:
        task = await fleet.submit(ONE, limits=Limits(wait_for_role_s=0.5))

        assert await fleet.ended(task) == TaskStatus.FAILED
        with fleet.reading() as reader:
            told = report(reader, task)
        assert told.reason == (
            "no live process served the pool 'executor' for 0.5 s; start one and run the task again"
        )
        assert [(one.rule, one.reason) for one in told.unlanded] == [("one-to-eins", told.reason)]


async def test_a_contract_that_nobody_knows_is_refused_naming_those_there_are(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        task = await fleet.submit(plug_in_recipe("team.heder"))

        assert await fleet.ended(task) == TaskStatus.REJECTED
        with fleet.reading() as reader:
            reason = report(reader, task).reason
        assert reason.startswith("There is no contract 'team.heder@1'; known are lint.fix, plan.draft,")


async def test_a_contract_is_refused_once_its_role_has_left_and_taken_while_it_is_there(
    tmp_path: Path,
) -> None:
    async with small_fleet(tmp_path) as fleet:
        document = plug_in()

        async def swap(action: Action, note: OnNote) -> Handoff:
            return change_files(fleet.hub, action)

        fleet.answers["team.header"] = swap
        name = await fleet.start_role("team", contracts=(document,))
        with fleet.reading() as reader:
            await fleet.wait(
                lambda: [one.ref for one in reader.contracts() if one.pool == "team"] == ["team.header@1"]
            )
            served = await fleet.submit(plug_in_recipe())
            assert await fleet.ended(served) == TaskStatus.COMPLETED
            proof = report(reader, served).rules[0].proof_by
            await fleet.drain_role(name)
            await fleet.wait(lambda: not any(one.pool == "team" for one in reader.contracts()))
            refused = await fleet.submit(plug_in_recipe())

            assert await fleet.ended(refused) == TaskStatus.REJECTED
            assert "no live role serves team.header@1" in report(reader, refused).reason
        assert proof == "two runs on one instance gave the same commits"


async def test_a_plug_in_is_still_served_after_the_supervisor_was_killed(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:

        async def swap(action: Action, note: OnNote) -> Handoff:
            return change_files(fleet.hub, action)

        fleet.answers["team.header"] = swap
        await fleet.start_role("team", contracts=(plug_in(),))
        with fleet.reading() as reader:
            await fleet.wait(lambda: any(one.pool == "team" for one in reader.contracts()))
        await fleet.stop_supervisor()
        task = await fleet.submit(plug_in_recipe())
        fleet.start_supervisor()

        assert await fleet.ended(task) == TaskStatus.COMPLETED


async def test_an_impure_contract_runs_once_under_its_lease(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        runs: list[Action] = []

        async def swap(action: Action, note: OnNote) -> Handoff:
            runs.append(action)
            return change_files(fleet.hub, action)

        fleet.answers["team.header"] = swap
        fleet.shards = 1
        for number in range(2):
            await fleet.start_role("team", contracts=(plug_in(pure=False),), name=f"team.host-{number}")
        with fleet.reading() as reader:
            await fleet.wait(lambda: len([one for one in reader.workers() if one.pool == "team"]) == 2)
        task = await fleet.submit(plug_in_recipe())

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        assert len(runs) == 1


async def test_a_contract_that_only_reports_may_say_that_it_is_done(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:

        async def look(action: Action, note: OnNote) -> Handoff:
            return handoff(action, Outcome.DONE, output={"seen": 3})

        fleet.answers["team.header"] = look
        await fleet.start_role("team", contracts=(plug_in(changes="nothing"),))
        with fleet.reading() as reader:
            await fleet.wait(lambda: any(one.pool == "team" for one in reader.contracts()))
        task = await fleet.submit(plug_in_recipe(), test=None)

        assert await fleet.ended(task) == TaskStatus.COMPLETED


# ---- canceling ---------------------------------------------------------------------------------------------------


async def test_a_cancel_stops_the_work_of_the_workers_and_is_told(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        holding = Holding(fleet)
        task = await fleet.submit(SWAP)
        await holding.begun()
        await fleet.cancel(task)

        assert await fleet.ended(task) == TaskStatus.CANCELED
        await fleet.wait(lambda: len(holding.stopped) == len(holding.held))
        with fleet.reading() as reader:
            told = report(reader, task)
        assert [one.rule for one in told.unlanded] == ["one-to-eins", "two-to-zwei"]
        assert told.set_aside == 0


async def test_a_cancel_right_after_the_submission_is_not_lost(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        tasks = [await fleet.submit(SWAP) for _ in range(5)]
        for task in tasks:
            await fleet.cancel(task)

        assert [await fleet.ended(task) for task in tasks] == [TaskStatus.CANCELED] * 5


async def test_what_landed_before_a_cancel_is_what_the_head_holds(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        fleet.shards = 1
        task = await fleet.submit(SWAP)
        with fleet.reading() as reader:
            await fleet.wait(
                lambda: any(one.event.__class__.__name__ == "HeadMoving" for one in reader.events(task))
            )
            await fleet.cancel(task)
            assert await fleet.ended(task) in {TaskStatus.CANCELED, TaskStatus.COMPLETED}
            told = report(reader, task)

        landed = [rule.commit for rule in told.rules if rule.status == "landed"]
        assert landed
        assert fleet.head(task) == told.head == landed[-1]


# ---- sharing -----------------------------------------------------------------------------------------------------


async def test_two_tasks_share_one_slot_in_turn(tmp_path: Path) -> None:
    async with small_fleet(tmp_path, pools=("planner", "reviewer", "tester")) as fleet:
        await fleet.start_role("executor", slots=1)
        order: list[str] = []
        change = fleet.answers["rewrite.pattern"]

        async def noted(action: Action, note: OnNote) -> Handoff:
            order.append(action.task)
            return await change(action, note)

        fleet.answers["rewrite.pattern"] = noted
        fleet.shards = 8
        tasks = [await fleet.submit(SWAP) for _ in range(2)]
        for task in tasks:
            assert await fleet.ended(task) == TaskStatus.COMPLETED

        first_half = order[: len(order) // 2]
        assert min(first_half.count(task) for task in tasks) >= len(first_half) // 4


async def test_work_that_fits_no_message_names_its_rule_and_stops_nobody_else(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        huge = recipe(
            ("one", "x" * 300_000), ("two", "y" * 300_000), ("three", "z" * 300_000), ("four", "w" * 300_000)
        )
        for rule, name in zip(huge["rules"], "abcd", strict=True):
            rule["id"] = name
        raw = await fleet.submit(huge)
        other = await fleet.submit(SWAP)

        assert await fleet.ended(raw) == TaskStatus.FAILED
        assert await fleet.ended(other) == TaskStatus.COMPLETED
        with fleet.reading() as reader:
            assert "bytes are more than" in report(reader, raw).reason

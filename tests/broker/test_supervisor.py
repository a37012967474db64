"""The supervisor at work with a small fleet on the memory bus."""

from pathlib import Path

from supervisor.journal.reader import JournalReader
from supervisor.journal.report import report
from supervisor.journal.trace import trace
from tests.small_fleet import recipe, small_fleet
from tests.unit.workspace_repos import files_at


async def test_a_submitted_recipe_lands_rule_by_rule(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        task = await fleet.submit(recipe(("one", "eins"), ("two", "zwei")))

        assert await fleet.ended(task) == "completed"

        head = fleet.head(task)
        assert files_at(fleet.hub, head)["b.py"] == b"eins = 2\nzwei = 3\n"


async def test_the_same_request_gives_the_same_commits(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        heads = []
        for shards in (1, 3):
            fleet.shards = shards
            task = await fleet.submit(recipe(("one", "eins"), ("two", "zwei")))
            assert await fleet.ended(task) == "completed"
            heads.append(fleet.head(task))

        assert heads[0] == heads[1]


async def test_the_journal_tells_the_story_when_nothing_runs_any_more(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        task = await fleet.submit(recipe(("one", "eins"), ("two", "zwei")))
        await fleet.ended(task)

    reader = JournalReader.open(tmp_path / "state")
    told, traced = report(reader, task), trace(reader, task)

    assert [(rule.rule, rule.status, rule.files, rule.sites) for rule in told.rules] == [
        ("one-to-eins", "landed", 2, 2),
        ("two-to-zwei", "landed", 2, 2),
    ]
    assert told.unlanded == ()
    assert {attempt.instance for action in traced.actions for attempt in action.attempts} <= set(told.workers)
    assert all(action.ended_at for action in traced.actions)
    kinds = {message.kind for message in traced.messages}
    assert {"task.submitted", "action.requested", "action.accepted", "action.handoff"} <= kinds
    reader.close()

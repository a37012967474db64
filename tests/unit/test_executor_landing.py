"""From changed files to a published result commit: bounded and always the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from executor.landing import OutOfReachError, action_digest, land, message_for
from tests.unit.role_work import action_for, hub_in
from tests.unit.workspace_repos import files_at, root_commit
from workspace.entries import FILE_MODE, NewFile
from workspace.hub import Hub
from workspace.refs import attempt_ref

CHANGES = {"src/a.py": NewFile(FILE_MODE, b"b = 2\n")}
MAKER = "ast-grep 0.51.0+r1"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with hub_in(tmp_path) as made:
        yield made


@pytest.fixture
def base(hub: Hub) -> str:
    return root_commit(hub, {"src/a.py": b"a = 1\n", "docs/b.txt": b"b\n"})


def test_the_result_is_published_under_the_attempts_own_ref(hub: Hub, base: str) -> None:
    action = action_for("rewrite.pattern@1", {}, base, attempt=3)

    landed = land(action, hub, CHANGES, maker=MAKER)

    assert landed.commit is not None
    assert files_at(hub, landed.commit) == {"src/a.py": b"b = 2\n", "docs/b.txt": b"b\n"}
    assert hub.refs("refs/rolecall/")[attempt_ref(action.task, action.step, 3)] == landed.commit
    assert [change.path for change in landed.changes] == ["src/a.py"]


def test_the_same_work_gives_the_same_commit_in_any_task_and_attempt(hub: Hub, base: str) -> None:
    action = action_for("rewrite.pattern@1", {"match": "a"}, base)
    elsewhere = action.model_copy(
        update={"task": "other", "step": "other.9", "attempt": 2, "nonce": "m" * 32}
    )

    assert land(action, hub, CHANGES, maker=MAKER) == land(elsewhere, hub, CHANGES, maker=MAKER)


def test_another_rule_or_engine_gives_another_digest(base: str) -> None:
    action = action_for("rewrite.pattern@1", {"match": "a"}, base)
    others = [
        action_digest(action, "ast-grep 0.52.0+r1"),
        action_digest(action.model_copy(update={"input": {"match": "b"}}), MAKER),
        action_digest(action_for("rewrite.pattern@1", {"match": "a"}, base, include=("src/**",)), MAKER),
    ]

    assert len({action_digest(action, MAKER), *others}) == 4


def test_the_message_names_rule_and_shard_in_one_line(base: str) -> None:
    action = action_for("rewrite.pattern@1", {}, base, rule="utc\nnow", start="src/\udcff", stop="src/m.py")

    subject, empty, trailer = message_for(action, MAKER).rstrip("\n").split("\n")

    assert subject == r"utc now: rewrite.pattern from src/\udcff up to src/m.py"
    assert empty == ""
    assert trailer == f"Rolecall-Action: {action_digest(action, MAKER)}"


def test_nothing_outside_the_reach_is_written(hub: Hub, base: str) -> None:
    action = action_for("rewrite.pattern@1", {}, base, include=("docs/**",))

    with pytest.raises(OutOfReachError, match=r"src/a\.py"):
        land(action, hub, CHANGES, maker=MAKER)

    assert hub.refs("refs/rolecall/") == {}


def test_files_that_come_out_as_they_went_in_are_no_result(hub: Hub, base: str) -> None:
    landed = land(
        action_for("x.y@1", {}, base), hub, {"src/a.py": NewFile(FILE_MODE, b"a = 1\n")}, maker=MAKER
    )

    assert landed.commit is None
    assert hub.refs("refs/rolecall/") == {}

"""A change action from end to end: base commit and rule in, result commit and an honest account out."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from executor.work import handle
from schemas.contracts import ContractRegistry
from schemas.handoff import FileChange, Handoff
from schemas.validation import checker
from schemas.words import ChangeKind, Outcome, Verdict
from tests.unit.role_work import action_for, context_in, hub_in
from tests.unit.workspace_repos import files_at, root_commit
from workspace.commit_check import check_result
from workspace.hub import Hub

UTCNOW = {
    "language": "python",
    "match": "datetime.utcnow()",
    "replace": "datetime.now(timezone.utc)",
    "imports": {"add": ["from datetime import timezone"]},
}
FILES = {
    "src/a.py": b"from datetime import datetime\n\n\ndef now():\n    return datetime.utcnow()\n",
    "src/b.py": b"x = 1\n",
    "src/broken.py": b"def (:\n    datetime.utcnow()\n",
    "vendored/c.py": b"from datetime import datetime\nnow = datetime.utcnow()\n",
}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with hub_in(tmp_path) as made:
        yield made


def change(
    folder: Path, hub: Hub, contract: str, given: Mapping[str, Any], base: str, **bounds: Any
) -> Handoff:
    document = ContractRegistry.builtin().get(contract)
    checked = checker(document.input).check(dict(given), contract)
    handoff = handle(action_for(document.ref, checked, base, **bounds), context_in(folder, hub))
    if handoff.outcome in (Outcome.DONE, Outcome.NO_CHANGE):
        checker(document.output).check(handoff.output, contract)
    return handoff


def test_a_rule_that_matches_gives_a_published_commit_and_a_full_account(tmp_path: Path, hub: Hub) -> None:
    base = root_commit(hub, FILES)

    handoff = change(tmp_path, hub, "rewrite.pattern", UTCNOW, base, include=("src/**",))

    assert handoff.outcome is Outcome.DONE
    assert handoff.result is not None
    new = b"from datetime import datetime, timezone\n\n\ndef now():\n    return datetime.now(timezone.utc)\n"
    assert files_at(hub, handoff.result) == FILES | {"src/a.py": new}
    assert handoff.result in hub.refs("refs/rolecall/").values()
    (file,) = handoff.files
    assert file == FileChange(
        path="src/a.py",
        change=ChangeKind.MODIFIED,
        added=2,
        removed=2,
        key_changes=(
            "1 site",
            "- from datetime import datetime",
            "+ from datetime import datetime, timezone",
            "now()",
        ),
    )
    assert [one.path for one in handoff.residue] == ["src/broken.py"]
    (evidence,) = handoff.evidence
    assert evidence.verdict is Verdict.PASS
    assert evidence.counts == {"files_seen": 3, "files_changed": 1, "sites": 1, "residue": 1}
    assert [(one.path, one.hunk, one.rule) for one in handoff.provenance] == [("src/a.py", 1, "first")]
    assert set(handoff.engines) == {"ast-grep"}
    assert handoff.cost.wall_ms >= 0
    assert handoff.ended_at >= handoff.started_at > 0


def test_the_result_passes_the_check_of_every_result(tmp_path: Path, hub: Hub) -> None:
    base = root_commit(hub, FILES)
    action = action_for("rewrite.pattern@1", UTCNOW, base, include=("src/**",))

    handoff = handle(action, context_in(tmp_path, hub))

    assert handoff.result is not None
    assert check_result(hub, base, handoff.result, action.reach) == ()


def test_a_rule_without_a_match_is_no_change(tmp_path: Path, hub: Hub) -> None:
    base = root_commit(hub, {"src/b.py": b"x = 1\n"})

    handoff = change(tmp_path, hub, "rewrite.pattern", UTCNOW, base)

    assert (handoff.outcome, handoff.result, handoff.files) == (Outcome.NO_CHANGE, None, ())
    assert handoff.evidence[0].counts["files_seen"] == 1


def test_files_outside_the_shard_are_not_looked_at(tmp_path: Path, hub: Hub) -> None:
    base = root_commit(hub, FILES)

    handoff = change(tmp_path, hub, "rewrite.pattern", UTCNOW, base, start="vendored", stop=None)

    assert [one.path for one in handoff.files] == ["vendored/c.py"]
    assert handoff.output["files_seen"] == 1


@pytest.mark.parametrize(
    ("contract", "given", "path", "after"),
    [
        ("text.replace", {"find": "x = 1", "replace": "x = 2"}, "src/b.py", b"x = 2\n"),
        (
            "lint.fix",
            {"rules": ["UP006"], "target": "py310"},
            "src/l.py",
            b"def f(x: list[int]) -> None: ...\n",
        ),
    ],
)
def test_the_other_engines_do_the_same(
    tmp_path: Path, hub: Hub, contract: str, given: dict[str, Any], path: str, after: bytes
) -> None:
    files = {
        "src/b.py": b"x = 1\n",
        "src/l.py": b"from typing import List\ndef f(x: List[int]) -> None: ...\n",
    }
    base = root_commit(hub, files)

    first = change(tmp_path, hub, contract, given, base)
    again = change(tmp_path, hub, contract, given, base)

    assert first.result is not None
    assert first.result == again.result
    assert files_at(hub, first.result)[path].endswith(after)


def test_a_contract_without_an_engine_here_fails_with_what_to_do(tmp_path: Path, hub: Hub) -> None:
    base = root_commit(hub, FILES)

    handoff = handle(action_for("licence.header@1", {}, base), context_in(tmp_path, hub))

    assert handoff.outcome is Outcome.FAILED
    assert handoff.error is not None
    assert "licence.header@1" in handoff.error.message
    assert "rolecall contracts" in handoff.error.suggestion


def test_a_rule_that_is_wrong_fails_without_a_result(tmp_path: Path, hub: Hub) -> None:
    base = root_commit(hub, FILES)

    handoff = handle(
        action_for("rewrite.pattern@1", {**UTCNOW, "language": "pyton"}, base), context_in(tmp_path, hub)
    )

    assert (handoff.outcome, handoff.result) == (Outcome.FAILED, None)
    assert handoff.error is not None
    assert "python" in handoff.error.suggestion


def test_a_base_that_is_not_there_could_not_run(tmp_path: Path, hub: Hub) -> None:
    handoff = handle(action_for("rewrite.pattern@1", UTCNOW, "e" * 40), context_in(tmp_path, hub))

    assert handoff.outcome is Outcome.COULD_NOT_RUN

"""What each role's process serves, and that its child processes do the work."""

from pathlib import Path
from types import ModuleType

import pytest

import executor.__main__
import reviewer.__main__
import tester.__main__
from bus.settings import RoleSettings
from schemas.handoff import Handoff
from schemas.words import Outcome, Verdict
from tests.unit.role_work import action_for, hub_in
from tests.unit.workspace_repos import root_commit

RULE = {"find": "x", "replace": "y", "words": True, "regex": False, "shardable": "whole"}


def settings_for(folder: Path, role: str) -> RoleSettings:
    return RoleSettings(
        environment="test", state_dir=folder / "state", hub=str(folder / "hub.git"), role=role
    )


@pytest.mark.parametrize(
    ("module", "role", "contracts"),
    [
        (
            executor.__main__,
            "executor",
            {"lint.fix@1", "rename.symbol@1", "rewrite.pattern@1", "text.replace@1"},
        ),
        (reviewer.__main__, "reviewer", {"review.change@1"}),
        (tester.__main__, "tester", {"test.run@1"}),
    ],
)
async def test_a_role_serves_the_contracts_of_its_pool(
    tmp_path: Path, module: ModuleType, role: str, contracts: set[str]
) -> None:
    with hub_in(tmp_path):
        spec, workers = module.build(settings_for(tmp_path, role))
        await workers.close()

    assert (spec.role, spec.pool, {one.ref for one in spec.contracts}) == (role, role, contracts)


async def test_children_execute_and_review(tmp_path: Path) -> None:
    notes: list[str] = []
    with hub_in(tmp_path) as hub:
        base = root_commit(hub, {"a.txt": b"x\n"})
        action = action_for("text.replace@1", RULE, base)

        changed = await _performed(executor.__main__, tmp_path, "executor", action, notes)
        given = {
            "contract": action.contract,
            "input": action.input,
            "reach": action.reach.model_dump(mode="json"),
            "result": changed.result,
            "proof": "rerun",
        }
        reviewed = await _performed(
            reviewer.__main__, tmp_path, "reviewer", action_for("review.change@1", given, base), notes
        )

    assert (changed.outcome, reviewed.verdict) == (Outcome.DONE, Verdict.PASS)
    assert notes[0] == "applying text.replace@1"
    assert "gate rerun" in notes


async def _performed(
    module: ModuleType, folder: Path, role: str, action: object, notes: list[str]
) -> Handoff:
    _, workers = module.build(settings_for(folder, role))
    try:
        handoff = await workers.run(0, action, notes.append)
    finally:
        await workers.close()
    assert isinstance(handoff, Handoff)
    return handoff

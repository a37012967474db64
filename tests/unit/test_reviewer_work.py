"""A review from end to end: honest results pass, and every kind of tampering is found by its gate."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executor.work import handle as execute
from reviewer.work import handle
from schemas.action import Action
from schemas.contracts import ContractRegistry
from schemas.handoff import Handoff
from schemas.validation import checker
from schemas.words import Outcome, Verdict
from tests.unit.role_work import action_for, context_in, hub_in
from tests.unit.workspace_repos import root_commit, run_git
from workspace.entries import EXECUTABLE_MODE, FILE_MODE, LINK_MODE, NewFile
from workspace.hub import Hub

UTCNOW = {
    "language": "python",
    "match": "datetime.utcnow()",
    "replace": "datetime.now(timezone.utc)",
    "imports": {"add": ["from datetime import timezone"]},
}
FILES: dict[str, bytes | NewFile] = {
    "src/a.py": b"from datetime import datetime\r\n\r\n\r\ndef now():\r\n    return datetime.utcnow()\r\n",
    "src/b.py": b"x = 1\n",
    "docs/c.txt": b"text\n",
    "link": NewFile(LINK_MODE, b"src/b.py"),
}
GATES = [
    "commit",
    "scope",
    "modes",
    "links",
    "encodings",
    "line_ends",
    "conflict_markers",
    "parses",
    "ruff",
    "rerun",
]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with hub_in(tmp_path) as made:
        yield made


@pytest.fixture
def base(hub: Hub) -> str:
    return root_commit(hub, FILES)


def step_on(base: str, given: dict[str, Any] | None = None, contract: str = "rewrite.pattern@1") -> Action:
    return action_for(contract, UTCNOW if given is None else given, base, include=("src/**",))


def review(
    folder: Path,
    hub: Hub,
    step: Action,
    result: str | None,
    *,
    proof: str = "rerun",
    allow: tuple[str, ...] = (),
) -> Handoff:
    contract = ContractRegistry.builtin().get("review.change")
    given = {
        "contract": step.contract,
        "input": step.input,
        "reach": step.reach.model_dump(mode="json"),
        "result": result,
        "proof": proof,
        "allow": list(allow),
    }
    checked = checker(contract.input).check(given, "review.change")
    handoff = handle(action_for("review.change@1", checked, step.base), context_in(folder, hub))
    if handoff.outcome is Outcome.DONE:
        checker(contract.output).check(handoff.output, "review.change")
    return handoff


def failed_gates(handoff: Handoff) -> set[str]:
    return {name for name, verdict in handoff.output["gates"].items() if verdict != "pass"}


def executed(folder: Path, hub: Hub, step: Action) -> str | None:
    return execute(step, context_in(folder, hub)).result


def on_top(hub: Hub, base: str, honest: str, **changes: NewFile | None) -> str:
    """The honest result with more changes, as one commit on the base."""
    wanted: dict[str, NewFile | None] = {
        one.path: None if one.new_oid is None else NewFile(one.new_mode or FILE_MODE, hub.read(one.new_oid))
        for one in hub.changes(base, honest)
    }
    return hub.commit(base, wanted | changes, message="tampered")


def test_an_honest_result_passes_every_gate_with_evidence(tmp_path: Path, hub: Hub, base: str) -> None:
    step = step_on(base)

    handoff = review(tmp_path, hub, step, executed(tmp_path, hub, step))

    assert (handoff.outcome, handoff.verdict, handoff.findings) == (Outcome.DONE, Verdict.PASS, ())
    assert handoff.output["gates"] == dict.fromkeys(GATES, "pass")
    assert [one.claim.split(":")[0] for one in handoff.evidence] == GATES
    assert handoff.evidence[-1].counts == {"files_changed": 1, "files_seen": 2, "sites": 1}


@pytest.mark.parametrize(
    ("contract", "given"),
    [
        ("text.replace@1", {"find": "x", "replace": "y"}),
        ("lint.fix@1", {"rules": ["UP017", "I001"], "target": "py311"}),
    ],
)
def test_results_of_every_engine_pass(
    tmp_path: Path, hub: Hub, base: str, contract: str, given: dict[str, Any]
) -> None:
    document = ContractRegistry.builtin().get(contract)
    step = step_on(base, checker(document.input).check(given, contract), contract)

    handoff = review(tmp_path, hub, step, executed(tmp_path, hub, step))

    assert (handoff.verdict, handoff.findings) == (Verdict.PASS, ())


def test_a_claim_of_no_change_passes_if_the_rule_finds_nothing(tmp_path: Path, hub: Hub, base: str) -> None:
    handoff = review(tmp_path, hub, step_on(base, {**UTCNOW, "match": "datetime.utcfromtimestamp($X)"}), None)

    assert (handoff.verdict, handoff.output["gates"]) == (Verdict.PASS, {"rerun": "pass"})


def test_a_false_claim_of_no_change_is_found(tmp_path: Path, hub: Hub, base: str) -> None:
    handoff = review(tmp_path, hub, step_on(base), None)

    assert handoff.verdict is Verdict.FAIL
    assert [(one.gate, one.path) for one in handoff.findings] == [("rerun", "src/a.py")]


A = "src/a.py"
GOOD = b"from datetime import datetime, timezone\r\n\r\n\r\ndef now():\r\n    return datetime.now(timezone.utc)\r\n"


@pytest.mark.parametrize(
    ("tampered", "gates"),
    [
        ({"docs/c.txt": NewFile(FILE_MODE, b"more\n")}, {"commit", "scope", "rerun"} - {"commit"}),
        ({"src/b.py": NewFile(FILE_MODE, b"x = 2\n")}, {"rerun"}),
        ({"src/b.py": None}, {"commit", "rerun"}),
        ({A: NewFile(EXECUTABLE_MODE, GOOD)}, {"commit", "modes", "rerun"}),
        ({A: NewFile(FILE_MODE, GOOD.replace(b"\r\n", b"\n"))}, {"line_ends", "rerun"}),
        ({A: NewFile(FILE_MODE, GOOD[:-2])}, {"line_ends", "rerun"}),
        ({A: NewFile(FILE_MODE, b"\xef\xbb\xbf" + GOOD)}, {"encodings", "rerun"}),
        ({A: NewFile(FILE_MODE, GOOD.replace(b"now()", b"now() # \xe9"))}, {"encodings", "parses", "rerun"}),
        ({A: NewFile(FILE_MODE, GOOD.replace(b"now()", b"now("))}, {"parses", "ruff", "rerun"}),
        ({A: NewFile(FILE_MODE, GOOD.replace(b", timezone\r\n", b"\r\n"))}, {"ruff", "rerun"}),
        ({A: NewFile(FILE_MODE, b"<<<<<<< a\r\n" + GOOD)}, {"conflict_markers", "parses", "ruff", "rerun"}),
        ({A: NewFile(LINK_MODE, b"b.py")}, {"commit", "modes", "links", "rerun"}),
        ({A: None}, {"commit", "rerun"}),
        ({"src/new.py": NewFile(FILE_MODE, b"import os\n")}, {"ruff", "rerun"}),
        ({"src/setup.cfg": NewFile(FILE_MODE, b"[x]\n")}, {"commit", "rerun"}),
    ],
)
def test_tampering_is_found_by_its_gates(
    tmp_path: Path, hub: Hub, base: str, tampered: dict[str, NewFile | None], gates: set[str]
) -> None:
    step = step_on(base)
    honest = executed(tmp_path, hub, step)
    assert honest is not None

    handoff = review(tmp_path, hub, step, on_top(hub, base, honest, **tampered))

    assert (handoff.outcome, handoff.verdict) == (Outcome.DONE, Verdict.FAIL)
    assert failed_gates(handoff) == gates
    assert {one.gate for one in handoff.findings} == gates


def test_a_result_on_another_parent_is_found(tmp_path: Path, hub: Hub, base: str) -> None:
    step = step_on(base)
    honest = executed(tmp_path, hub, step)
    assert honest is not None
    other = hub.commit(base, {"src/b.py": NewFile(FILE_MODE, b"x = 2\n")}, message="other")
    tree = hub.head_tree(honest)
    moved = run_git(hub.repository, "commit-tree", tree, "-p", other, "-m", "moved")

    assert failed_gates(review(tmp_path, hub, step, moved)) == {"commit"}


def test_what_was_granted_at_submission_is_no_fault(tmp_path: Path, hub: Hub, base: str) -> None:
    step = step_on(base)
    honest = executed(tmp_path, hub, step)
    assert honest is not None
    executable = on_top(hub, base, honest, **{A: NewFile(EXECUTABLE_MODE, GOOD)})

    assert failed_gates(review(tmp_path, hub, step, executable, allow=("modes",))) == {"rerun"}


def test_two_runs_are_the_proof_of_a_contract_that_no_engine_runs(
    tmp_path: Path, hub: Hub, base: str
) -> None:
    step = step_on(base, {}, "licence.header@1")
    result = hub.commit(base, {"src/b.py": NewFile(FILE_MODE, b"# (c)\nx = 1\n")}, message="licence")

    twice = review(tmp_path, hub, step, result, proof="twice")
    nothing = review(tmp_path, hub, step, None, proof="twice")

    assert twice.output["gates"] == dict.fromkeys([*GATES[:-1], "twice"], "pass")
    assert nothing.output["gates"] == {"twice": "pass"}


def test_a_contract_that_cannot_be_run_again_could_not_be_reviewed(
    tmp_path: Path, hub: Hub, base: str
) -> None:
    step = step_on(base, {}, "licence.header@1")
    result = hub.commit(base, {"src/b.py": NewFile(FILE_MODE, b"# (c)\nx = 1\n")}, message="licence")

    handoff = review(tmp_path, hub, step, result)

    assert (handoff.outcome, handoff.verdict) == (Outcome.COULD_NOT_RUN, Verdict.COULD_NOT_RUN)
    assert handoff.output["gates"]["rerun"] == "could_not_run"
    assert handoff.error is not None
    assert "licence.header@1" in handoff.error.message


def test_a_result_that_is_not_in_the_hub_could_not_be_reviewed(tmp_path: Path, hub: Hub, base: str) -> None:
    handoff = review(tmp_path, hub, step_on(base), "e" * 40)

    assert (handoff.outcome, handoff.verdict) == (Outcome.COULD_NOT_RUN, Verdict.COULD_NOT_RUN)


def test_a_hub_with_sha256_is_reviewed_alike(tmp_path: Path) -> None:
    with Hub.create(tmp_path / "hub256.git", object_format="sha256") as hub:
        step = step_on(root_commit(hub, FILES))

        handoff = review(tmp_path, hub, step, executed(tmp_path, hub, step))

        assert (handoff.verdict, handoff.findings) == (Verdict.PASS, ())

"""The gates about the commit itself: made as every result is made, and inside the step's scope."""

from collections.abc import Sequence

from reviewer.case import Case, GateReport, finding, judge
from schemas.handoff import Finding
from schemas.words import Severity
from workspace.commit_check import check_result

_OWN_GATE = "scope"


def commit(case: Case) -> GateReport:
    """Parent, metadata, names, links, modes and granted effects, as the workspace checks every result."""
    found = _errors(_checked(case))
    counts = {"files": len(case.changes)}
    return judge(
        "commit",
        [one.model_copy(update={"gate": "commit"}) for one in found],
        clean="made as every result is",
        counts=counts,
    )


def scope(case: Case) -> GateReport:
    """Every changed path is one that the step may change."""
    found = [
        finding("scope", "It is outside the step's scope; change nothing there.", path=change.path)
        for change in case.changes
        if not case.reach.admits(change.path)
    ]
    return judge("scope", found, clean="every changed file is in scope", counts={"files": len(case.changes)})


def _checked(case: Case) -> tuple[Finding, ...]:
    assert case.result is not None, "a claim of no change has no commit to check"
    return check_result(case.hub, case.base, case.result, case.reach, case.allow)


def _errors(findings: Sequence[Finding]) -> list[Finding]:
    return [one for one in findings if one.severity is Severity.ERROR and one.gate != _OWN_GATE]

"""`review.change`: a step's claim in, a verdict with findings and evidence out, gate by gate.

A claim of no change has no commit, so only the proof can be asked. One gate that says no is a `fail`; one that
could not run is never a `pass`, and the attempt ends as `could_not_run`, so that it is tried elsewhere.
"""

from functools import partial

from engines.memory import Memory
from reviewer.bytewise import conflict_markers, encodings, line_ends, links, modes
from reviewer.case import Case, Gate, GateReport, could_not_run, load_changes
from reviewer.commit import commit, scope
from reviewer.lint import ruff
from reviewer.parses import parses
from reviewer.rerun import rerun, twice
from schemas.action import Action
from schemas.errors import RolecallError
from schemas.handoff import Failure, Handoff, RiskNote
from schemas.scope import Reach
from schemas.words import Outcome, Severity, Verdict
from workspace.answers import Stopwatch
from workspace.work import WorkContext


def handle(action: Action, context: WorkContext) -> Handoff:
    """Judge the result that the action names."""
    watch = Stopwatch.started()
    try:
        case = _case(action, context)
        reports = [_ask(name, gate, case, context) for name, gate in _gates(action, case, context).items()]
    except RolecallError as error:
        return watch.failed(action, error, outcome=Outcome.COULD_NOT_RUN, verdict=Verdict.COULD_NOT_RUN)
    verdict = overall(reports)
    stuck = verdict is Verdict.COULD_NOT_RUN
    return watch.answer(
        action,
        outcome=Outcome.COULD_NOT_RUN if stuck else Outcome.DONE,
        verdict=verdict,
        output={"gates": {report.gate: report.verdict.value for report in reports}},
        findings=tuple(one for report in reports for one in report.findings),
        evidence=tuple(report.as_evidence() for report in reports),
        risks=_risks(reports),
        error=_failure(reports) if stuck else None,
    )


def overall(reports: list[GateReport]) -> Verdict:
    """`pass` only if every gate passed."""
    verdicts = {report.verdict for report in reports}
    if Verdict.FAIL in verdicts:
        return Verdict.FAIL
    return Verdict.PASS if verdicts == {Verdict.PASS} else Verdict.COULD_NOT_RUN


def _case(action: Action, context: WorkContext) -> Case:
    given, hub = action.input, context.hub
    result = given.get("result")
    hub.ensure(action.base)
    if result is not None:
        hub.ensure(result)
    return Case(
        hub=hub,
        base=action.base,
        result=result,
        contract=given["contract"],
        input=given["input"],
        reach=Reach.model_validate(given["reach"]),
        allow=frozenset(given.get("allow", ())),
        changes=load_changes(hub, action.base, result) if result is not None else (),
    )


def _gates(action: Action, case: Case, context: WorkContext) -> dict[str, Gate]:
    """The gates in the order of their cost; the proof comes last."""
    proofs: dict[str, Gate] = {"twice": twice, "rerun": partial(rerun, memory=Memory(context.cache))}
    asked = action.input["proof"]
    proof = {asked: proofs[asked]} if asked in proofs else {}
    if case.result is None:
        return proof
    return {
        "commit": commit,
        "scope": scope,
        "modes": modes,
        "links": links,
        "encodings": encodings,
        "line_ends": line_ends,
        "conflict_markers": conflict_markers,
        "parses": parses,
        "ruff": partial(ruff, scratch=context.scratch),
        **proof,
    }


def _ask(name: str, gate: Gate, case: Case, context: WorkContext) -> GateReport:
    context.note(f"gate {name}")
    try:
        return gate(case)
    except (RolecallError, OSError) as error:
        return could_not_run(name, str(error))


def _failure(reports: list[GateReport]) -> Failure:
    stuck = next(report for report in reports if report.verdict is not Verdict.PASS)
    return Failure(code="gate_could_not_run", message=f"The gate {stuck.gate} could not run: {stuck.claim}")


def _risks(reports: list[GateReport]) -> tuple[RiskNote, ...]:
    """What the gates could not look at: it is no fault, but a reader should know."""
    notes = {
        "broken_before": "changed files did not parse before either, so nothing is said about them",
        "no_parser": "changed files are in no language that is parsed here; only their bytes were checked",
        "unreadable": "Python files cannot be decoded, so ruff did not look at them",
    }
    return tuple(
        RiskNote(severity=Severity.INFO, text=f"{report.counts[count]} {text}.")
        for report in reports
        for count, text in notes.items()
        if report.counts and report.counts.get(count)
    )

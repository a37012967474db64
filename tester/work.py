"""`test.run`: a commit in, a verdict per test out.

Without a baseline this run *is* the baseline: its results are stored, red ones too, and later runs are judged
over what passed in it. With one, every new failure is run again before it counts.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from schemas.action import Action
from schemas.errors import RolecallError
from schemas.handoff import Evidence, Handoff, RiskNote
from schemas.words import Outcome, Severity, Verdict
from tester.blame import Blame, assign_blame, new_failures
from tester.budget import Budget
from tester.loaded import import_roots, missing_modules, shadowed
from tester.results import Results, from_blob, to_blob
from tester.runner import Run, Runner, TestSpec
from tester.verdict import (
    Judgement,
    all_risks,
    judge_baseline,
    judge_candidate,
    judge_without_results,
    loaded_risks,
)
from workspace.answers import Stopwatch
from workspace.refs import blob_ref
from workspace.work import WorkContext

# When a run that hung is made again: so many times as long as the baseline took, and so many seconds more.
_PATIENCE = 10
_PATIENCE_S = 30.0
# Whole logs that stay on this machine, named by the digest that the evidence cites.
_KEPT_LOGS = 40


@dataclass(frozen=True, slots=True)
class _Answer:
    """All that goes into the handoff: the last run that counts, and every run as evidence."""

    judgement: Judgement
    run: Run
    runs: tuple[tuple[str, Run], ...]
    blame: Blame = field(default_factory=Blame)


def handle(action: Action, context: WorkContext) -> Handoff:
    """Run the tests that the action asks for. Never raises for what the tests do."""
    watch = Stopwatch.started()
    spec = TestSpec.of(action.input)
    runner = Runner(spec, context, Budget.starting_now(action.time_limit_s, run_limit_s=spec.timeout_s))
    try:
        paths = frozenset(context.hub.list_tree(action.base))
        if spec.baseline is None:
            answer = _baseline(runner, action.base, paths, context)
        else:
            baseline = from_blob(context.hub.read(spec.baseline))
            answer = _candidate(runner, action.base, baseline, context)
        results = _store(answer.run.results, action, context)
    except RolecallError as error:
        return watch.failed(
            action, error, outcome=Outcome.COULD_NOT_RUN, verdict=Verdict.COULD_NOT_RUN, jobs=runner.jobs
        )
    _keep_logs([run for _, run in answer.runs], context.cache / "logs")
    loaded = loaded_risks(answer.run, paths)
    return watch.answer(
        action,
        outcome=Outcome.DONE,
        verdict=answer.judgement.verdict,
        jobs=runner.jobs,
        output=_output(answer, results),
        findings=answer.judgement.findings,
        risks=all_risks(answer.judgement.risks, loaded),
        evidence=tuple(_evidence(claim, run) for claim, run in answer.runs)
        + _proof_of_loading(answer.run, bool(loaded)),
    )


def _baseline(runner: Runner, commit: str, paths: frozenset[str], context: WorkContext) -> _Answer:
    context.note("running the tests before any change")
    first = runner.run(commit)
    runs = [("The tests before any change", first)]
    chosen = first
    roots = _roots_to_try(first, paths)
    if roots and runner.budget.has_room_for(first.sandbox.wall_ms / 1000):
        context.note("running the tests again with the tree's own folders on PYTHONPATH")
        second = runner.run(commit, import_roots=roots)
        runs.append(
            (f"The same with {', '.join(root or '.' for root in roots)} of the tree on PYTHONPATH", second)
        )
        if _passes(second) and _passes(second) >= _passes(first):
            chosen = second
    return _Answer(judge_baseline(chosen, runner.spec, paths), chosen, tuple(runs))


def _candidate(runner: Runner, commit: str, baseline: Results, context: WorkContext) -> _Answer:
    context.note("running the tests on the candidate")
    first = runner.run(commit, import_roots=baseline.import_roots)
    if first.results is None:
        return _without_results(runner, first, baseline, context)
    return _compared(
        runner, first, first.results, baseline, (("The tests on the candidate", first),), context
    )


def _without_results(runner: Runner, first: Run, baseline: Results, context: WorkContext) -> _Answer:
    """The candidate hung, crashed or broke the report: again, and then the head is asked whether it can do it."""
    runs = [("The tests on the candidate", first)]
    # The tests are known to end much sooner than the user's limit: a hang need not be waited for twice.
    expected_s = baseline.duration_ms / 1000
    runner.budget = runner.budget.tightened(_PATIENCE * expected_s + _PATIENCE_S)
    run, there = first, None
    if runner.budget.has_room_for(expected_s):
        context.note("running the tests on the candidate once more")
        run = runner.run(first.commit, import_roots=baseline.import_roots)
        runs.append(("The tests on the candidate, once more", run))
    if run.results is not None:
        answer = _compared(runner, run, run.results, baseline, tuple(runs), context)
        risk = RiskNote(severity=Severity.WARNING, text=f"A first run had no results: {first.trouble}")
        return replace(answer, judgement=replace(answer.judgement, risks=(*answer.judgement.risks, risk)))
    if runner.spec.head is not None and runner.budget.has_room_for(expected_s):
        context.note("running the tests on the head, to compare")
        there = runner.run(runner.spec.head, import_roots=baseline.import_roots)
        runs.append(("The tests on the head", there))
    return _Answer(judge_without_results(first, there, runner.spec), run, tuple(runs))


def _compared(
    runner: Runner,
    run: Run,
    results: Results,
    baseline: Results,
    runs: tuple[tuple[str, Run], ...],
    context: WorkContext,
) -> _Answer:
    """A run with results, held against the baseline; every new failure is run again."""
    failures = new_failures(baseline, results)
    if not failures:
        return _Answer(judge_candidate(baseline, results, Blame()), run, runs)
    context.note(f"{len(failures)} new failures: running them again")
    blame = assign_blame(runner, failures, baseline=baseline, candidate=run.commit, head=runner.spec.head)
    again = tuple((_again(one, run.commit), one) for one in blame.runs)
    return _Answer(judge_candidate(baseline, results, blame), run, runs + again, blame)


def _roots_to_try(run: Run, paths: frozenset[str]) -> tuple[str, ...]:
    """Folders of the tree that hold modules which were loaded from elsewhere, or not found."""
    wanted = set(shadowed(run.loaded, paths)) if run.loaded is not None else set()
    told = [case.message for case in run.results.cases.values()] if run.results is not None else []
    return import_roots(wanted | missing_modules([*told, run.output]), paths)


def _passes(run: Run) -> int:
    return 0 if run.results is None else len(run.results.passed())


def _again(run: Run, candidate: str) -> str:
    return f"The new failures again, on the {'candidate' if run.commit == candidate else 'head'}"


def _store(results: Results | None, action: Action, context: WorkContext) -> str | None:
    if results is None:
        return None
    ref = blob_ref(action.task, f"{action.action_id}-{action.attempt}-results")
    return context.hub.write_blob(to_blob(results), ref=ref)


def _output(answer: _Answer, blob: str | None) -> dict[str, Any]:
    results = answer.run.results
    counts = results.counts() if results is not None else {"passed": 0, "failed": 0, "skipped": 0}
    output: dict[str, Any] = {
        **counts,
        "duration_ms": answer.run.sandbox.wall_ms,
        "new_failures": list(answer.blame.blamed or answer.blame.undecided),
        "flaky": list(answer.blame.flaky),
        "results": blob,
    }
    return output | ({"by": results.by.value} if results is not None else {})


def _evidence(claim: str, run: Run) -> Evidence:
    ended = run.sandbox
    told, verdict = run.trouble, Verdict.COULD_NOT_RUN
    if run.results is not None:
        counts = run.results.counts()
        told = ", ".join(f"{number} {word}" for word, number in counts.items())
        verdict = Verdict.PASS if counts["passed"] and not counts["failed"] else Verdict.FAIL
    return Evidence(
        claim=f"{claim} ({run.commit[:10]}): {told}",
        verdict=verdict,
        command=run.command,
        exit_code=ended.exit_code,
        counts=run.results.counts() if run.results is not None else {},
        log_digest=ended.log_digest,
        head=ended.head,
        tail=ended.tail,
    )


def _proof_of_loading(run: Run, is_risky: bool) -> tuple[Evidence, ...]:
    """Which files of the tree the tests loaded, where a probe could look."""
    if run.loaded is None or run.results is None:
        return ()
    files = len(run.loaded.product_files())
    return (
        Evidence(
            claim=f"The tests loaded {files} files of the tree that are not tests",
            verdict=Verdict.FAIL if is_risky else Verdict.PASS,
            counts={"loaded": len(run.loaded.inside), "not_tests": files},
        ),
    )


def _keep_logs(runs: Sequence[Run], folder: Path) -> None:
    """The newest whole logs stay on this machine as `<digest>.log`."""
    folder.mkdir(parents=True, exist_ok=True)
    for run in runs:
        if run.sandbox.log.exists():
            shutil.move(run.sandbox.log, folder / f"{run.sandbox.log_digest}.log")
    by_age = sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime)
    for old in by_age[:-_KEPT_LOGS]:
        old.unlink(missing_ok=True)

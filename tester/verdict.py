"""What the runs mean: the verdict, its findings and risks, in words for a reader. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.handoff import Finding, RiskNote
from schemas.words import Severity, Verdict
from tester.blame import Blame
from tester.discovery import looks_like_test
from tester.loaded import shadowed
from tester.results import Results, Source, Status
from tester.runner import Run, TestSpec

GATE = "tests"
# A verdict names this many tests; the results blob has all of them.
MAX_FINDINGS = 50
_ERROR_WORDS = ("No module named", "not found", ": error:")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reasons."""

    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    risks: tuple[RiskNote, ...] = ()


def judge_baseline(run: Run, spec: TestSpec, paths: frozenset[str]) -> Judgement:
    """Can later runs be compared with this one? Only if something passed (a lone exit code: only if it is green)."""
    results = run.results
    if results is None:
        return _could_not_run(f"{run.trouble} {_first_error(run)}".strip(), spec)
    if results.passed():
        red = results.count(Status.FAILED, Status.ERROR)
        text = f"{red} tests are red already before any change; only those that pass are compared."
        return Judgement(Verdict.PASS, risks=(_risk(text, Severity.INFO),) if red else ())
    if _ran_nothing(results):
        if not any(looks_like_test(path) for path in paths):
            text = f"There are no tests: `{' '.join(spec.command)}` found none, and no file of the tree looks like one."
            return Judgement(Verdict.NOTHING_RAN, findings=(_finding(text),))
        return _could_not_run(
            f"No test was collected, though there are test files. {_first_error(run)}", spec
        )
    if results.by is Source.EXIT_CODE:
        text = "The command is red before any change, so its exit code says nothing about one."
        return _could_not_run(f"{text} {_first_error(run)}", spec)
    counts = results.counts()
    told = f"No test passes before any change ({counts['failed']} failed, {counts['skipped']} skipped)."
    return _could_not_run(f"{told} {_first_error(run)}", spec)


def judge_candidate(baseline: Results, candidate: Results, blame: Blame) -> Judgement:
    """The verdict over the tests that passed in the baseline, once every new failure has been looked into."""
    risks = (
        *(
            _risk(f"{name} failed once and passed when run again: flaky.")
            for name in blame.flaky[:MAX_FINDINGS]
        ),
        *(
            _risk(f"{name} fails on the head too: not this change's doing.")
            for name in blame.red_on_head[:MAX_FINDINGS]
        ),
        *_ended_otherwise(baseline, candidate),
    )
    if blame.blamed:
        return Judgement(Verdict.FAIL, _findings_about(blame), risks)
    if blame.undecided:
        text = f"{len(blame.undecided)} tests fail that passed in the baseline ({blame.undecided[0]}, …), and {blame.reason}."
        return Judgement(Verdict.COULD_NOT_RUN, (_finding(text),), risks)
    settled = candidate.passed() | frozenset(blame.flaky)
    if not baseline.passed() & settled:
        text = "No test that passed in the baseline passes now, nor on the head: the environment may have changed."
        return Judgement(Verdict.COULD_NOT_RUN, (_finding(text),), risks)
    return Judgement(Verdict.PASS, (), risks)


def judge_without_results(run: Run, head: Run | None, spec: TestSpec) -> Judgement:
    """The candidate's run has no results, twice; the head's run says whose fault that is."""
    if head is not None and head.results is not None and head.results.passed():
        text = f"{run.trouble} On the head the same command works. {_first_error(run)}"
        return Judgement(Verdict.FAIL, (_finding(text.strip()),))
    where = "on the head neither" if head is not None else "and there is no head to compare with"
    return _could_not_run(f"{run.trouble} ({where}) {_first_error(run)}", spec)


def loaded_risks(run: Run, paths: frozenset[str]) -> tuple[RiskNote, ...]:
    """What to know about *which* code the tests ran; nothing where no probe could look."""
    if run.loaded is None or run.results is None:
        return ()
    elsewhere = shadowed(run.loaded, paths)
    if elsewhere:
        told = ", ".join(f"{name} from {file}" for name, file in list(elsewhere.items())[:5])
        text = f"The tests loaded {told} and not the tree's own: what passes there says nothing about the change."
        return (_risk(f"{text} An editable install (`pip install -e .`) loads the tree's.", Severity.ERROR),)
    if not run.loaded.product_files():
        text = "The test process loaded nothing of the tree but test files: nothing proves that the tests ran its code."
        return (_risk(text),)
    return ()


def _findings_about(blame: Blame) -> tuple[Finding, ...]:
    names = list(blame.blamed.items())
    found = [
        _finding(f"{name} passed before and fails with this change: {why}", path=_path_of(name))
        for name, why in names[:MAX_FINDINGS]
    ]
    if len(names) > MAX_FINDINGS:
        found.append(
            _finding(
                f"{len(names) - MAX_FINDINGS} more tests fail; output.new_failures and the results blob name them."
            )
        )
    return tuple(found)


def _ended_otherwise(baseline: Results, candidate: Results) -> tuple[RiskNote, ...]:
    """The exit code changed although no test did: coverage limits, a crash at the end, a plug-in's own check."""
    red = candidate.count(Status.FAILED, Status.ERROR)
    if candidate.exit_code in (0, baseline.exit_code) or red:
        return ()
    text = f"The command ended with exit code {candidate.exit_code} (baseline: {baseline.exit_code}) though no test failed."
    return (_risk(text),)


def _ran_nothing(results: Results) -> bool:
    if results.by is Source.JUNIT:
        return not results.cases
    return results.count(Status.SKIPPED) > 0


def _could_not_run(text: str, spec: TestSpec) -> Judgement:
    where = f"It ran in {spec.environment}." if spec.environment else "No environment was given."
    hint = f"{where} Name the one that has what the tests need with `--env PATH` (a virtual environment's folder)."
    return Judgement(Verdict.COULD_NOT_RUN, (_finding(f"{text.strip()} {hint}"),))


def _first_error(run: Run) -> str:
    """The first thing that went wrong, as the report or the output tells it; a sentence."""
    if run.results is not None and run.results.by is Source.JUNIT:
        for name, case in run.results.cases.items():
            if case.status.is_red and case.message:
                return f"The first error, in {name}: {case.message.rstrip('.')}."
    lines = [line.strip() for line in run.output.splitlines() if line.strip()]
    telling = [line for line in lines if _tells_an_error(line)]
    first = telling[0] if telling else (lines[-1] if lines else "")
    return f"The first error: {first[:400].rstrip('.')}." if first else ""


def _tells_an_error(line: str) -> bool:
    # "ImportError: …", "E   ModuleNotFoundError: …", "python3: No module named pytest", "pytest: error: unknown …"
    if line.startswith("ERROR: usage:"):
        return False  # pytest's own: the next lines say what is wrong
    head = line.removeprefix("E ").lstrip().split(" ", 1)[0]
    return head.endswith(("Error:", "error:", "ERROR:", "Exception:")) or any(
        word in line for word in _ERROR_WORDS
    )


def _path_of(name: str) -> str | None:
    path = name.partition("::")[0]
    return path if path.endswith(".py") and path != name else None


def _finding(text: str, *, path: str | None = None) -> Finding:
    return Finding(gate=GATE, severity=Severity.ERROR, text=text, path=path)


def _risk(text: str, severity: Severity = Severity.WARNING) -> RiskNote:
    return RiskNote(severity=severity, text=text)


def all_risks(*groups: Sequence[RiskNote]) -> tuple[RiskNote, ...]:
    """The risks of several runs, each text once."""
    return tuple({risk.text: risk for group in groups for risk in group}.values())

"""What runs of the tests mean, with runs made up: no sandbox is started here."""

from collections.abc import Collection
from pathlib import Path

import pytest

from schemas.words import Severity, Verdict
from tester.blame import Blame, assign_blame, new_failures
from tester.budget import Budget
from tester.loaded import Loaded
from tester.results import Case, Results, Source, Status, from_blob, to_blob
from tester.runner import WHOLE_COMMAND, Run, Runner, TestSpec
from tester.verdict import judge_baseline, judge_candidate, judge_without_results, loaded_risks
from workspace.job import SandboxResult, Stop

BASE, HEAD, CANDIDATE = "b" * 40, "d" * 40, "c" * 40
SPEC = TestSpec(
    command=("python", "-m", "pytest"),
    timeout_s=60,
    env={},
    environment=None,
    checkout=None,
    baseline=None,
    head=HEAD,
)


def results(*, by: Source = Source.JUNIT, exit_code: int = 0, **cases: str) -> Results:
    return Results(
        by, {name: Case(Status(word), f"{name} says so") for name, word in cases.items()}, exit_code, 1000
    )


def command_ended(exit_code: int) -> Results:
    status = Status.FAILED if exit_code else Status.PASSED
    return Results(Source.EXIT_CODE, {WHOLE_COMMAND: Case(status)}, exit_code, 1000)


def run_of(
    found: Results | None,
    *,
    commit: str = CANDIDATE,
    output: str = "",
    trouble: str = "",
    loaded: Loaded | None = None,
) -> Run:
    ended = SandboxResult(
        stop=Stop.EXITED,
        exit_code=found.exit_code if found else 1,
        signal=None,
        head=output,
        tail="",
        output_bytes=len(output),
        log=Path("/nowhere"),
        log_digest="0" * 64,
        wall_ms=1000,
        cpu_ms=10,
        cpu_is_whole=True,
        cpu_reaped_ms=10,
        tree=Path("/tree"),
    )
    return Run(commit, SPEC.command, ended, found, trouble, loaded)


class ScriptedRunner(Runner):
    """Answers from a list: (commit, alone?) → results, and remembers what was asked."""

    def __init__(
        self, *answers: tuple[str, bool, Results | None], can_narrow: bool = True, left_s: float = 1000
    ) -> None:
        self.spec = SPEC
        self.budget = Budget.starting_now(left_s, run_limit_s=60)
        self._answers = list(answers)
        self._narrow = can_narrow

    @property
    def can_narrow(self) -> bool:
        return self._narrow

    def run(
        self, commit: str, *, only: Collection[str] | None = None, import_roots: tuple[str, ...] = ()
    ) -> Run:
        expected, alone, found = self._answers.pop(0)
        assert (commit, only is not None) == (expected, alone)
        return run_of(found, commit=commit, trouble="" if found else "It hung.")

    def is_done(self) -> bool:
        return not self._answers


BASELINE = results(a="passed", b="passed", c="passed", red="failed", skip="skipped")


def test_what_passed_before_and_is_red_skipped_or_missing_now_is_a_new_failure() -> None:
    now = results(a="failed", b="skipped", red="failed", skip="passed", fresh="failed")

    assert new_failures(BASELINE, now) == {
        "a": "failed: a says so",
        "b": "skipped: b says so",
        "c": "did not run",
    }


def blame_for(runner: ScriptedRunner, failures: dict[str, str], head: str | None = HEAD) -> Blame:
    blame = assign_blame(runner, failures, baseline=BASELINE, candidate=CANDIDATE, head=head)
    assert runner.is_done()
    return blame


def test_a_test_that_fails_twice_here_and_passes_on_the_head_is_blamed() -> None:
    runner = ScriptedRunner((CANDIDATE, True, results(a="failed")), (HEAD, True, results(a="passed")))

    assert blame_for(runner, {"a": "why"}).blamed == {"a": "why"}


def test_a_test_that_passes_the_second_time_alone_and_with_all_others_is_flaky() -> None:
    runner = ScriptedRunner((CANDIDATE, True, results(a="passed")), (CANDIDATE, False, BASELINE))

    blame = blame_for(runner, {"a": "why"})

    assert (blame.blamed, blame.flaky) == ({}, ("a",))


def test_a_test_that_passes_alone_but_fails_among_the_others_is_blamed_if_the_head_can_do_it() -> None:
    broken = results(a="failed", b="passed", c="passed")
    runner = ScriptedRunner(
        (CANDIDATE, True, results(a="passed")), (CANDIDATE, False, broken), (HEAD, False, BASELINE)
    )

    assert blame_for(runner, {"a": "why"}).blamed == {"a": "why"}


def test_a_test_that_needs_its_neighbours_is_still_judged() -> None:
    """Alone it fails on the head as well; among the others it passes there, and fails here."""
    runner = ScriptedRunner(
        (CANDIDATE, True, results(a="failed")),
        (HEAD, True, results(a="failed")),
        (CANDIDATE, False, results(a="failed", b="passed", c="passed")),
        (HEAD, False, BASELINE),
    )

    assert blame_for(runner, {"a": "why"}).blamed == {"a": "why"}


def test_a_test_that_fails_on_the_head_too_is_nobodys_fault() -> None:
    red = results(a="failed", b="passed", c="passed")
    runner = ScriptedRunner(
        (CANDIDATE, True, results(a="failed")),
        (HEAD, True, results(a="failed")),
        (CANDIDATE, False, red),
        (HEAD, False, red),
    )

    blame = blame_for(runner, {"a": "why"})

    assert (blame.blamed, blame.red_on_head) == ({}, ("a",))


def test_without_a_head_what_fails_twice_is_blamed() -> None:
    runner = ScriptedRunner((CANDIDATE, True, results(a="failed", b="passed")))

    blame = blame_for(runner, {"a": "why", "b": "why"}, head=None)

    assert (blame.blamed, blame.flaky) == ({"a": "why"}, ("b",))


def test_a_command_without_single_tests_is_run_as_a_whole() -> None:
    red = command_ended(1)
    green = command_ended(0)
    runner = ScriptedRunner((CANDIDATE, False, red), (HEAD, False, green), can_narrow=False)

    assert blame_for(runner, {WHOLE_COMMAND: "why"}).blamed == {WHOLE_COMMAND: "why"}


def test_no_time_to_run_again_leaves_it_undecided() -> None:
    runner = ScriptedRunner(can_narrow=False, left_s=0.01)

    blame = blame_for(runner, {"a": "why"})

    assert (blame.blamed, blame.undecided) == ({}, ("a",))
    assert judge_candidate(BASELINE, results(b="passed"), blame).verdict is Verdict.COULD_NOT_RUN


@pytest.mark.parametrize("hangs", ["candidate", "head"])
def test_a_hang_in_the_second_run_leaves_it_undecided(hangs: str) -> None:
    red = results(a="failed", b="passed", c="passed")
    whole = (
        [(CANDIDATE, False, None)] if hangs == "candidate" else [(CANDIDATE, False, red), (HEAD, False, None)]
    )
    runner = ScriptedRunner(*whole, can_narrow=False)

    blame = blame_for(runner, {"a": "why"})

    assert blame.undecided == ("a",)
    assert "It hung." in blame.reason


def test_a_baseline_with_one_pass_can_be_compared_with() -> None:
    judged = judge_baseline(run_of(BASELINE), SPEC, frozenset())

    assert judged.verdict is Verdict.PASS
    assert [risk.text for risk in judged.risks] == [
        "1 tests are red already before any change; only those that pass are compared."
    ]


def test_a_baseline_where_everything_is_red_names_the_first_error_and_the_environment() -> None:
    judged = judge_baseline(run_of(results(a="error", b="failed")), SPEC, frozenset({"tests/test_a.py"}))

    assert judged.verdict is Verdict.COULD_NOT_RUN
    assert "The first error, in a: a says so" in judged.findings[0].text
    assert "--env PATH" in judged.findings[0].text


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("noise\n/usr/bin/python3: No module named pytest\n", "No module named pytest"),
        (
            "Traceback\nE   ModuleNotFoundError: No module named 'six'\nmore",
            "ModuleNotFoundError: No module named 'six'",
        ),
        ("ERROR: usage: x\npytest: error: unknown -z\n", "pytest: error: unknown -z"),
        ("only this", "only this"),
    ],
)
def test_a_baseline_without_a_report_tells_the_first_error(output: str, error: str) -> None:
    judged = judge_baseline(run_of(None, output=output, trouble="No report."), SPEC, frozenset())

    assert judged.verdict is Verdict.COULD_NOT_RUN
    assert error in judged.findings[0].text


def test_no_tests_at_all_is_nothing_ran() -> None:
    empty = results(exit_code=5)

    assert judge_baseline(run_of(empty), SPEC, frozenset({"src/a.py"})).verdict is Verdict.NOTHING_RAN


def test_test_files_of_which_nothing_is_collected_could_not_run() -> None:
    empty = results(exit_code=5)

    assert (
        judge_baseline(run_of(empty), SPEC, frozenset({"tests/test_a.py"})).verdict is Verdict.COULD_NOT_RUN
    )


def test_a_red_command_is_no_baseline() -> None:
    red = command_ended(2)

    assert judge_baseline(run_of(red), SPEC, frozenset()).verdict is Verdict.COULD_NOT_RUN


def test_a_candidate_whose_tests_all_pass_passes() -> None:
    judged = judge_candidate(BASELINE, BASELINE, Blame())

    assert (judged.verdict, judged.findings, judged.risks) == (Verdict.PASS, (), ())


def test_a_blamed_test_fails_the_candidate_and_names_the_file() -> None:
    judged = judge_candidate(
        BASELINE, results(b="passed"), Blame(blamed={"tests/test_a.py::test_a": "failed: x"})
    )

    assert judged.verdict is Verdict.FAIL
    assert judged.findings[0].path == "tests/test_a.py"


def test_flaky_tests_do_not_fail_the_candidate_but_are_named() -> None:
    judged = judge_candidate(BASELINE, results(b="passed", c="passed"), Blame(flaky=("a",)))

    assert judged.verdict is Verdict.PASS
    assert "flaky" in judged.risks[0].text


def test_a_candidate_on_which_nothing_of_the_baseline_passes_is_never_a_pass() -> None:
    judged = judge_candidate(BASELINE, results(fresh="passed"), Blame(red_on_head=("a", "b", "c")))

    assert judged.verdict is Verdict.COULD_NOT_RUN


def test_another_exit_code_without_a_red_test_is_told() -> None:
    judged = judge_candidate(results(a="passed"), results(a="passed", exit_code=2), Blame())

    assert judged.verdict is Verdict.PASS
    assert "exit code 2" in judged.risks[0].text


def test_a_run_without_results_fails_if_the_head_can_do_it() -> None:
    hung = run_of(None, trouble="The tests did not end within 60 s and were killed.")

    assert judge_without_results(hung, run_of(BASELINE), SPEC).verdict is Verdict.FAIL
    assert judge_without_results(hung, run_of(None), SPEC).verdict is Verdict.COULD_NOT_RUN
    assert judge_without_results(hung, None, SPEC).verdict is Verdict.COULD_NOT_RUN


def test_tests_of_an_installed_copy_are_an_error_level_risk() -> None:
    loaded = Loaded(
        frozenset({"tests/test_a.py"}), {"click": "/venv/lib/click/__init__.py", "json": "/usr/lib/json.py"}
    )

    risks = loaded_risks(run_of(BASELINE, loaded=loaded), frozenset({"src/click/__init__.py"}))

    assert [risk.severity for risk in risks] == [Severity.ERROR]
    assert "click from /venv/lib/click/__init__.py" in risks[0].text


def test_tests_that_load_nothing_but_themselves_are_a_risk() -> None:
    loaded = Loaded(frozenset({"tests/test_a.py", "tests/helpers.py", "conftest.py"}), {})

    risks = loaded_risks(run_of(BASELINE, loaded=loaded), frozenset())

    assert [risk.severity for risk in risks] == [Severity.WARNING]


def test_tests_that_load_the_trees_code_are_no_risk() -> None:
    loaded = Loaded(frozenset({"src/click/core.py"}), {"pytest": "/venv/pytest.py"})

    assert loaded_risks(run_of(BASELINE, loaded=loaded), frozenset({"src/click/__init__.py"})) == ()


def test_results_come_back_from_their_blob_without_messages() -> None:
    kept = Results(Source.JUNIT, {"a": Case(Status.PASSED), "b": Case(Status.ERROR, "long")}, 1, 5, ("src",))

    assert from_blob(to_blob(kept)) == Results(
        Source.JUNIT, {"a": Case(Status.PASSED), "b": Case(Status.ERROR)}, 1, 5, ("src",)
    )

"""The report as a person reads it, on a terminal and as Markdown."""

from io import StringIO

import pytest
from rich.console import Console

from rolecall.client import report_markdown, report_text, story
from schemas.errors import ExitCode
from schemas.handoff import Cost, Residue
from schemas.report import Report, TestsTold
from schemas.words import TaskStatus, Verdict
from tests.unit.telling_cases import full_report, landed_rule


def on_terminal(report: Report, width: int = 140) -> str:
    file = StringIO()
    Console(file=file, width=width, highlight=False, markup=False).print(report_text.render(report))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def test_the_outcome_comes_first_then_rules_then_what_did_not_land() -> None:
    lines = on_terminal(full_report()).splitlines()

    assert lines[0] == "◐ Partly landed: 1 of 2 rules  modern on /home/ada/arrow, 1 min 35 s"
    assert "12 sites in 2 files, +14 -12 lines" in lines[1]
    order = [next(i for i, line in enumerate(lines) if line.startswith(title)) for title in
             ("Tests", "Did not land", "Left as it was", "Worth a look", "Cost", "Next")]  # fmt: skip
    assert order == sorted(order)


def test_a_rule_shows_commit_sites_files_lines_proof_and_tests() -> None:
    row = next(line for line in on_terminal(full_report()).splitlines() if line.lstrip().startswith("✔"))

    assert row.split() == [
        "✔", "utcnow", "cccccccccccc", "12", "2", "+14", "-12", "applied", "again,", "same", "tree", "1,665", "passed,",
        "1", "failed",
    ]  # fmt: skip


def test_places_that_were_left_are_grouped_by_reason() -> None:
    text = on_terminal(full_report())

    assert "6 x utcnow: only looks like it" in text
    assert "docs/1.rst:1, docs/2.rst:2, docs/3.rst:3, docs/4.rst:4 and 2 more" in text


def test_the_next_commands_fit_the_outcome() -> None:
    delivered = [command for command, _ in story.next_commands(full_report())]
    in_hub = [command for command, _ in story.next_commands(full_report(delivered=None))]
    failed = [command for command, _ in story.next_commands(full_report(status=TaskStatus.FAILED, rules=()))]

    assert delivered[1] == "git switch rolecall/modern-456789ab"
    assert in_hub[0] == "rolecall deliver 456789ab"
    assert failed == ["rolecall report 456789ab --json", "rolecall trace 456789ab"]


def test_git_is_told_where_the_repository_is_when_the_user_stands_elsewhere() -> None:
    def first(folder: str) -> str:
        return story.next_commands(full_report(), story.Program(folder=folder))[1][0]

    assert first("/home/ada/arrow/docs") == "git switch rolecall/modern-456789ab"
    assert first("/home/ada") == "git -C arrow switch rolecall/modern-456789ab"
    assert first("/tmp") == "git -C /home/ada/arrow switch rolecall/modern-456789ab"


def test_commands_are_told_as_the_user_has_to_type_them() -> None:
    program = story.Program(".venv/bin/rolecall", "other")

    commands = [command for command, _ in story.next_commands(full_report(delivered=None), program)]

    assert commands[0] == ".venv/bin/rolecall deliver 456789ab -E other"


@pytest.mark.parametrize(
    ("status", "unlanded", "code"),
    [
        (TaskStatus.COMPLETED, False, ExitCode.OK),
        (TaskStatus.COMPLETED, True, ExitCode.PARTLY_LANDED),
        (TaskStatus.FAILED, False, ExitCode.FAILED),
        (TaskStatus.REJECTED, False, ExitCode.FAILED),
        (TaskStatus.CANCELED, False, ExitCode.CANCELED),
        (TaskStatus.INPUT_REQUIRED, False, ExitCode.WAITS_FOR_APPROVAL),
    ],
)
def test_the_exit_code_is_the_outcome(status: TaskStatus, unlanded: bool, code: ExitCode) -> None:
    changes = {} if unlanded else {"unlanded": ()}

    assert story.exit_code(full_report(status=status, **changes)) == code


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (full_report(rules=(landed_rule(),), unlanded=()), "The rule landed"),
        (full_report(rules=(landed_rule(), landed_rule(rule="b")), unlanded=()), "All 2 rules landed"),
        (full_report(rules=(landed_rule(status="unchanged"),), unlanded=()), "Nothing to do: no rule found anything to change"),
        (full_report(status=TaskStatus.FAILED, reason="no tester came"), "Failed: no tester came"),
        (full_report(status=TaskStatus.CANCELED), "Canceled: 1 of 3 rules had landed"),
    ],
)  # fmt: skip
def test_the_headline_says_how_it_ended(report: Report, sentence: str) -> None:
    assert story.headline(report) == sentence


def test_a_red_baseline_is_told_and_an_unusable_one_too() -> None:
    unusable = TestsTold(verdict=Verdict.COULD_NOT_RUN, reason="No module named 'arrow'")

    assert story.baseline(full_report()) == (
        "The unchanged repository: 1,665 passed in 8.0 s; 1 test failed there already and counts for nothing."
    )
    assert "No module named 'arrow'" in story.baseline(full_report(baseline=unusable))


def test_what_landed_untested_is_said_aloud() -> None:
    report = full_report(untested=True, test_command=(), baseline=None, rules=(landed_rule(tested=None),))

    assert story.tests(report, report.rules[0]) == "not tested"
    assert "What landed was not tested" in on_terminal(report)
    assert "What landed was not tested" in report_markdown.render(
        report.model_copy(update={"baseline": TestsTold(verdict=Verdict.NOTHING_RAN)})
    )


def test_a_run_without_tests_says_so_plainly() -> None:
    report = full_report(
        untested=True,
        no_tests=True,
        test_command=(),
        baseline=TestsTold(verdict=Verdict.NOTHING_RAN, reason="tests were switched off with --no-tests"),
        rules=(landed_rule(tested=None),),
    )

    assert story.tests(report, report.rules[0]) == "not tested"
    for view in (on_terminal(report), report_markdown.render(report)):
        assert "No tests were run, neither before nor after any rule" in view
    assert "What landed was not tested (--no-tests)." in on_terminal(report)


def test_a_cost_that_is_not_whole_says_at_least() -> None:
    whole, part = Cost(wall_ms=61_000, cpu_ms=42_000), Cost(wall_ms=61_000, cpu_ms=42_000, cpu_is_whole=False)

    assert story.cost(full_report(cost=whole)).endswith("of work, 42 s of CPU")
    assert story.cost(full_report(cost=part)).endswith("of work, at least 42 s of CPU")


def test_hostile_names_stay_text_in_both_views() -> None:
    nasty = Residue(path="a`|b\x1b[31m.py", line=1, reason="[link](http://evil) | <b>")
    report = full_report(rules=(landed_rule(residue=(nasty,), residue_count=1),))

    markdown = report_markdown.render(report)

    assert "\x1b" not in on_terminal(report)
    assert "\x1b" not in markdown
    assert r"\[link\](http://evil) \| \<b\>" in markdown
    assert "`a'\\|b?[31m.py:1`" in markdown


def test_markdown_has_one_table_row_a_rule() -> None:
    rows = [line for line in report_markdown.render(full_report()).splitlines() if line.startswith("| ")]

    assert len(rows) == 1 + 3
    assert rows[1].startswith(
        "| landed | `utcnow` | `cccccccccccc` | 12 | 2 | +14 -12 | applied again, same tree (3 reviews"
    )
    assert rows[3] == "| unlanded | `bold` | | | | | 2 tests fail with it | |"

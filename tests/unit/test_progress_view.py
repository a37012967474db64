"""A task at one moment: what a watcher sees, and what becomes news."""

from io import StringIO

from rich.console import Console, RenderableType

from rolecall.client.progress_view import Seen, render, summary
from schemas.report import WorkerLine
from schemas.task import RuleProgress, TaskProgress
from schemas.words import TaskStatus, Verdict
from tests.unit.telling_cases import SECOND, START, TASK


def rule(name: str, status: str, **fields: object) -> RuleProgress:
    return RuleProgress(rule=name, contract="text.replace@1", status=status, **fields)


def picture(*rules: RuleProgress, **fields: object) -> TaskProgress:
    given = {
        "status": TaskStatus.WORKING,
        "phase": "landing",
        "sentence": "changing a",
        "at": START,
        **fields,
    }
    return TaskProgress(task=TASK, rules=rules, **given)


def lines(view: RenderableType) -> list[str]:
    file = StringIO()
    Console(file=file, width=120, highlight=False, markup=False).print(view)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_news_is_what_a_picture_adds_and_nothing_is_said_twice() -> None:
    seen = Seen(started_us=START)
    first = picture(rule("a", "running"), rule("b", "waiting"))
    second = picture(
        rule("a", "landed", commit="c" * 40),
        rule("b", "unlanded", reason="2 tests fail"),
        baseline=Verdict.PASS,
    )

    told = [seen.news(one, at_us=START + SECOND) for one in (first, second, second)]

    assert told == [
        ["changing a"],
        ["the unchanged repository's tests: pass", "a: landed cccccccccc", "b: not landed: 2 tests fail"],
        [],
    ]


def test_the_view_shows_rules_with_bars_what_runs_where_and_the_last_sentences() -> None:
    seen = Seen(recipe="modern", started_us=START)
    seen.workers = (
        WorkerLine(
            instance="h-1-1", role="executor", pool="executor", host="h", pid=4711, version="0", slots=1,
            state="ready", heartbeat_at=START, running=("rewrite.pattern a.s3",),
        ),
    )  # fmt: skip
    seen.news(picture(rule("a", "running", steps=4, reviewed=2, files=3)), at_us=START + 2 * SECOND)

    view = lines(render(seen, now_us=START + 3 * SECOND))

    assert view[0] == "modern  456789ab  working  3.0 s"
    row = next(line for line in view if line.startswith("▶"))
    assert (row.split()[1], row.split()[-4:]) == ("a", ["2/4", "3", "files", "running"])
    assert "  executor 4711: rewrite.pattern a.s3" in view
    assert view[-1] == "   2.0 s  changing a"


def test_a_watcher_is_told_when_nothing_comes_and_what_is_waited_for() -> None:
    seen = Seen(recipe="modern", started_us=START)
    waiting = lines(render(seen, now_us=START + SECOND))
    seen.news(picture(waiting_for=("tester",)), at_us=START)

    view = "\n".join(lines(render(seen, now_us=START + 60 * SECOND)))

    assert waiting == ["… waiting for the supervisor, 1.0 s"]
    assert "waits for: tester; `rolecall ps` shows who is there" in view
    assert "no news for 1 min: is the supervisor running?" in view


def test_status_tells_how_an_ended_task_ended() -> None:
    view = lines(
        summary(
            picture(
                rule("a", "landed", steps=1, reviewed=1, commit="c" * 40),
                rule("b", "unchanged", reason="no site"),
                status=TaskStatus.COMPLETED,
                sentence="everything landed",
            )
        )
    )

    assert view[:2] == ["456789ab  completed", "everything landed"]
    assert view[2].endswith("1/1             landed cccccccccc") or "landed cccccccccc" in view[2]
    assert "no site" in view[3]


def test_foreign_text_cannot_move_the_cursor() -> None:
    seen = Seen(recipe="a\x1b[2J", started_us=START)
    seen.news(picture(rule("x\x1b[31m", "unlanded", reason="\x07bell")), at_us=START)

    assert "\x1b" not in "".join(lines(render(seen, now_us=START)))

"""The waterfall: who, waited, ran, retried, verdict."""

from io import StringIO

from rich.console import Console

from rolecall.client import trace_text
from schemas.report import Trace
from tests.unit.telling_cases import SECOND, START, TASK, full_trace


def on_terminal(trace: Trace, *, messages: bool = False, width: int = 170) -> list[str]:
    file = StringIO()
    view = trace_text.render(trace, now_us=START + 40 * SECOND, messages=messages, width=40)
    Console(file=file, width=width, highlight=False, markup=False).print(view)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_bar_waits_and_runs_where_the_time_says() -> None:
    row = next(line for line in on_terminal(full_trace()) if "plan plan/0" in line)

    # 40 columns for 40 seconds: waited one, ran two.
    bar = row[row.index("░") :]
    assert bar.startswith("░██ ")
    assert row.split()[-3:] == ["2.0", "s", "done"]


def test_an_attempt_that_was_lost_is_followed_by_the_one_elsewhere() -> None:
    lines = on_terminal(full_trace())
    lost = next(i for i, line in enumerate(lines) if "executor-1" in line)

    assert "lost · three heartbeats missed" in lines[lost]
    assert "again, attempt 2" in lines[lost + 1]
    assert "executor-2" in lines[lost + 1]
    assert lines[lost + 1].count("░") == 10


def test_a_verdict_stands_beside_its_outcome() -> None:
    assert any("reviewer-1" in line and "done · fail" in line for line in on_terminal(full_trace()))


def test_what_still_runs_ends_at_now_and_says_so() -> None:
    trace = full_trace()
    running = trace.actions[0].attempts[0].model_copy(update={"ended_at": None, "outcome": ""})
    action = trace.actions[0].model_copy(update={"attempts": (running,), "outcome": "", "ended_at": None})
    lines = on_terminal(trace.model_copy(update={"actions": (action,), "ended_at": None}))

    row = next(line for line in lines if "plan plan/0" in line)
    assert row.endswith("runs")
    assert row.count("█") == 39


def test_an_action_that_nobody_took_yet_waits() -> None:
    trace = full_trace()
    sent = (
        trace.actions[0]
        .attempts[0]
        .model_copy(
            update={"accepted_at": None, "started_at": None, "ended_at": None, "outcome": "", "instance": ""}
        )
    )
    action = trace.actions[0].model_copy(update={"attempts": (sent,), "outcome": "", "ended_at": None})
    lines = on_terminal(trace.model_copy(update={"actions": (action,), "ended_at": None}))

    assert next(line for line in lines if "plan plan/0" in line).endswith("waits")


def test_the_head_counts_and_messages_are_listed_when_asked_for() -> None:
    lines = on_terminal(full_trace(), messages=True)

    assert lines[0].startswith(
        f"Task {TASK}  completed, 40 s: 3 actions, 4 attempts, 2 messages; waited 1.0 s"
    )
    assert any(
        "action.requested #1" in line and "00000000bbbb" in line and "00000000aaaa" in line for line in lines
    )
    assert not any("action.requested" in line for line in on_terminal(full_trace()))


def test_a_task_without_actions_still_has_a_trace() -> None:
    lines = on_terminal(full_trace().model_copy(update={"actions": ()}))

    assert any("modern on arrow: 3 rules." in line for line in lines)

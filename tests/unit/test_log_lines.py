"""Merged logs: one colour a role, one line a record, and nothing that moves the cursor."""

from rolecall.processes.log_lines import tinted


def test_a_record_keeps_its_text_and_gets_its_roles_colour() -> None:
    text = tinted("executor-1", "12:00:01  executor-4711  Took an action.  step=a/1")

    assert text.plain.split("  ")[0] == "12:00:01"
    assert text.plain.endswith("Took an action.  step=a/1")
    assert ("executor-4711", "green") in {
        (text.plain[s.start : s.end].strip(), str(s.style)) for s in text.spans
    }


def test_a_warning_and_an_error_stand_out() -> None:
    styles = [
        str(tinted("tester", f"12:00:01  tester-1  {mark} Oh.").spans[-1].style) for mark in ("!", "!!")
    ]

    assert styles == ["yellow", "red"]


def test_a_line_that_is_no_record_gets_the_childs_name_and_stays_one_line() -> None:
    text = tinted("planner", "Traceback \x1b[31m(most recent call last):")

    assert text.plain == f"{'planner':<20}  Traceback ?[31m(most recent call last):"

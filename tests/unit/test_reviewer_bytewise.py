"""Bytes that a rule did not ask for come out as they went in."""

from collections.abc import Callable
from typing import Any

import pytest

from reviewer.bytewise import conflict_markers, encodings, line_ends, links, modes
from reviewer.case import Case, GateReport
from schemas.words import Verdict
from tests.unit.review_cases import case_of, edit


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb\n", b"a\nc\n"),
        (b"a\r\nb\r\n", b"x\r\na\r\nb\r\n"),
        (b"a\r\nb\n", b"a\r\nc\n"),
        (b"a\nb", b"a\nc"),
        (b"a", b"b"),
        (b"a\r\rb\n", b"a\r\rc\n"),
        (b"", b"new\n"),
        (b"gone\n", b""),
        (b"\0\r\n", b"\0\n"),  # binary: not a text's line ends
    ],
)
def test_kept_line_ends_pass(before: bytes, after: bytes) -> None:
    assert line_ends(case_of(edit(before, after))).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (b"a\nb\n", b"a\r\nb\r\n", 1),
        (b"a\r\nb\r\n", b"a\r\nx\nb\r\n", 2),
        (b"a\r\nb\r\nc\n", b"a\r\nb\nc\n", 2),
        (b"a\nb\nc\r\n", b"x\r\na\nb\r\nc\r\n", 3),
        (b"a\nb\n", b"a\rb\n", 1),
        (b"a\nb\n", b"a\nc", 0),
        (b"a\nb", b"a\nc\n", 0),
    ],
)
def test_another_line_end_is_found(before: bytes, after: bytes, line: int) -> None:
    report = line_ends(case_of(edit(before, after)))

    assert report.verdict is Verdict.FAIL
    assert [(one.path, one.line) for one in report.findings] == [("a.py", line)]


def test_line_ends_of_a_very_long_mixed_file_are_compared_without_a_diff() -> None:
    before = b"x\r\n" + b"".join(b"line %d\n" % n for n in range(5000))
    after = before.replace(b"line 4000\n", b"line 4000\r\n")

    report = line_ends(case_of(edit(before, after)))

    assert [one.line for one in report.findings] == [4002]


def test_new_lines_in_the_minority_style_are_found_when_they_win() -> None:
    before = b"a\r\nb\r\nc\n"

    report = line_ends(case_of(edit(before, before + b"1\n2\n3\n")))

    assert "Most lines ended in CRLF and now end in LF" in report.findings[0].text


@pytest.mark.parametrize(
    "input",
    [
        {"find": "\r\n", "replace": "\n"},
        {"find": r"\r\n", "replace": "x", "regex": True},
        {"find": r"\s+$", "replace": "", "regex": True},
    ],
)
def test_a_text_rule_that_names_line_ends_may_change_them(input: dict[str, Any]) -> None:
    assert line_ends(case_of(edit(b"a\r\n", b"a\n"), input=input)).verdict is Verdict.PASS


def test_a_rule_about_the_last_newline_may_add_it_but_not_change_the_others() -> None:
    rule = {"rules": ["W292"]}

    assert line_ends(case_of(edit(b"a\nb", b"a\nb\n"), input=rule)).verdict is Verdict.PASS
    assert line_ends(case_of(edit(b"a\nb", b"a\r\nb\n"), input=rule)).verdict is Verdict.FAIL


LATIN = "# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1")


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.py", LATIN, LATIN.replace(b"name", b"other")),
        ("a.py", b"\xef\xbb\xbfx = 1\n", b"\xef\xbb\xbfx = 2\n"),
        ("a.txt", "é".encode("utf-16"), "è".encode("utf-16")),
        ("a.txt", b"\xff\xe9", b"\xff\xe8"),
        ("a.txt", "é".encode(), b"e"),
        ("a.py", b"# coding: no-such\nx = 1\n", b"# coding: no-such\nx = 2\n"),
        ("a.py", b"# coding: utf-8\nx = 1\n", b"x = 1\n"),
    ],
)
def test_a_kept_encoding_passes(path: str, before: bytes, after: bytes) -> None:
    assert encodings(case_of(edit(before, after, path=path))).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("path", "before", "after", "told"),
    [
        ("a.py", b"\xef\xbb\xbfx = 1\n", b"x = 1\n", "byte order mark changes from UTF-8 to none"),
        ("a.py", b"x = 1\n", b"\xef\xbb\xbfx = 1\n", "byte order mark changes from none to UTF-8"),
        ("a.txt", "é".encode("utf-16-le"), b"\xff\xfe" + "é".encode("utf-16-le"), "byte order mark"),
        ("a.txt", "é".encode(), "é".encode("latin-1"), "utf-8 and does not decode"),
        ("a.txt", "é".encode("latin-1"), "é".encode(), "was not UTF-8 and is now"),
        ("a.py", "x = 'é'\n".encode(), LATIN, "does not decode"),
    ],
)
def test_another_encoding_is_found(path: str, before: bytes, after: bytes, told: str) -> None:
    report = encodings(case_of(edit(before, after, path=path)))

    assert report.verdict is Verdict.FAIL
    assert told in report.findings[0].text


@pytest.mark.parametrize(
    "marker", [b"<<<<<<< ours\n", b">>>>>>> theirs\n", b"||||||| base\n", b"<<<<<<<\r\n"]
)
def test_a_conflict_marker_that_came_in_is_found(marker: bytes) -> None:
    report = conflict_markers(case_of(edit(b"a\nb\n", b"a\n" + marker + b"b\n")))

    assert report.verdict is Verdict.FAIL
    assert [one.line for one in report.findings] == [2]


def test_the_line_of_a_new_conflict_marker_is_told_also_where_others_stood_before() -> None:
    before = b"<<<<<<< example\ntext\n"

    report = conflict_markers(case_of(edit(before, before + b"x\n>>>>>>> theirs\n")))

    assert [one.line for one in report.findings] == [4]


def test_markers_that_were_there_before_are_no_finding() -> None:
    text = b"<<<<<<< example\n=======\n>>>>>>> example\n"

    assert conflict_markers(case_of(edit(text + b"a\n", text + b"b\n"))).verdict is Verdict.PASS
    assert conflict_markers(case_of(edit(b"Title\n", b"Title\n=======\n"))).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("gate", "case", "allow"),
    [
        (modes, case_of(edit(b"a", b"a", new_mode="100755")), "modes"),
        (modes, case_of(edit(None, b"a", new_mode="100600")), "modes"),
        (links, case_of(edit(b"a", b"b", old_mode="120000", new_mode="120000")), "links"),
        (links, case_of(edit(b"a", b"a", new_mode="120000")), "links"),
        (links, case_of(edit(None, b"", new_mode="160000")), "submodules"),
        (links, case_of(edit(b"a", None, old_mode="120000")), "links"),
        (encodings, case_of(edit("é".encode(), "é".encode("latin-1"))), "encodings"),
        (line_ends, case_of(edit(b"a\n", b"a\r\n")), "line-ends"),
    ],
)
def test_what_was_not_asked_for_fails_unless_it_is_allowed(
    gate: Callable[[Case], GateReport], case: Case, allow: str
) -> None:
    allowed = case_of(*case.changes, allow=(allow,))

    assert (gate(case).verdict, gate(allowed).verdict) == (Verdict.FAIL, Verdict.PASS)


def test_a_new_executable_file_is_a_file() -> None:
    assert modes(case_of(edit(None, b"#!/bin/sh\n", new_mode="100755"))).verdict is Verdict.PASS


def test_many_findings_are_cut_and_counted() -> None:
    report = modes(case_of(*(edit(b"", b"", path=f"{n}.py", new_mode="100755") for n in range(80))))

    assert len(report.findings) == 51
    assert report.findings[-1].text.startswith("30 more")
    assert (report.counts or {})["findings"] == 80

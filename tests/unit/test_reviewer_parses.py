"""A changed file still parses if it did before."""

import pytest

from reviewer.parses import parses
from schemas.words import Verdict
from tests.unit.review_cases import case_of, edit

LATIN = "# coding: latin-1\nname = 'é'\n".encode("latin-1")


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.py", b"x = 1\n", b"x = 2\n"),
        ("a.py", LATIN, LATIN.replace(b"name", b"other")),
        ("a.py", b"\xef\xbb\xbfx = 1\r\n", b"\xef\xbb\xbfx = 2\r\n"),
        ("a.py", b"x = '\\d'\n", b"y = '\\d'\n"),  # a SyntaxWarning is no error
        ("a.py", b"print 'two'\n", b"print 'three'\n"),  # Python 2 did not parse before
        ("a.py", b"x = (\n", b"y = (\n"),
        ("a.py", b"\0", b"\0x"),
        ("a.pyi", b"def f() -> int: ...\n", b"def f() -> str: ...\n"),
        ("a.js", b"let a = {b: 1};\n", b"let a = {b: 2};\n"),
        ("a.js", b"let a = {b: 1\n", b"let a = {b: 2\n"),
        ("a.json", b'{"a": 1}', b'{"a": 2}'),
        ("tsconfig.json", b'{"a": 1, // why\n}', b'{"a": 2, // why\n}'),
        ("a.toml", b"a = 1\n", b"a = 2\n"),
        ("a.yaml", b"a: !Ref b\n---\nc: d\n", b"a: !Ref x\n---\nc: d\n"),
        ("notes.txt", b"((((", b"))))"),
    ],
)
def test_what_parses_as_before_passes(path: str, before: bytes, after: bytes) -> None:
    assert parses(case_of(edit(before, after, path=path))).findings == ()


@pytest.mark.parametrize(
    ("path", "before", "after", "line"),
    [
        ("a.py", b"x = 1\n", b"x = 1\ny = (\n", 2),
        ("a.py", b"x = 1\n", b"import os\nfrom __future__ import annotations\n", 2),
        ("a.py", b"def f():\n    return 1\n", b"return 1\n", 1),
        ("a.py", LATIN, LATIN.replace(b"latin-1", b"utf-8"), 0),
        ("a.py", b"x = 1\n", b"x = \0\n", 0),
        ("a.py", b"x = 1\n", b"x = " + b"(" * 3000 + b")" * 3000, 1),
        ("a.py", b"print 'two'\n", b"print 'two'\nx = = 1\n", 0),
        ("a.js", b"let a = {b: 1};\n", b"let a = {b: 1;\n", 0),
        ("a.go", b"package p\nfunc f() {}\n", b"package p\nfunc f( {}\n", 0),
        ("a.json", b'{"a": 1}', b'{"a": 1,}', 1),
        ("a.toml", b"a = 1\n", b"a = \n", 0),
        ("a.yaml", b"a: b\n", b"a: b\nc: [1\n", 3),
        ("new.py", None, b"x = (\n", 1),
        ("new.json", None, b"{", 1),
    ],
)
def test_what_parsed_before_and_does_not_now_is_found(
    path: str, before: bytes | None, after: bytes, line: int
) -> None:
    report = parses(case_of(edit(before, after, path=path)))

    assert report.verdict is Verdict.FAIL
    assert [one.path for one in report.findings] == [path]
    assert not line or report.findings[0].line == line


def test_files_that_no_parser_can_judge_are_counted() -> None:
    report = parses(
        case_of(
            edit(b"a", b"b", path="a.txt"),
            edit(b"a = 1", b"a = 2"),
            edit(b"let = = 1", b"let = = = 1", path="broken.js"),
            edit(b"x", None, path="gone.py"),
        )
    )

    assert report.counts == {"files": 3, "parsed": 1, "broken_before": 1, "no_parser": 1}

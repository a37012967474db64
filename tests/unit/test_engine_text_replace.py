"""`text.replace`: where it looks, what it keeps, and what it leaves with a reason."""

from typing import Any

import pytest

from engines.text_replace import TextReplace
from schemas.errors import ContractError
from schemas.words import Severity
from tests.unit.engine_cases import TEXT, left, replace_text, run
from workspace.view import DictView

PYTHON = "'''colour'''\nx = 'colour' + f'colour {colour}'  # colour\n"


@pytest.mark.parametrize(
    ("places", "after"),
    [
        (["code"], "'''colour'''\nx = 'colour' + f'colour {color}'  # colour\n"),
        (["strings"], "'''colour'''\nx = 'color' + f'color {colour}'  # colour\n"),
        (["comments"], "'''colour'''\nx = 'colour' + f'colour {colour}'  # color\n"),
        (["docs"], "'''color'''\nx = 'colour' + f'colour {colour}'  # colour\n"),
        (["code", "comments"], "'''colour'''\nx = 'colour' + f'colour {color}'  # color\n"),
        (["code", "docs", "strings", "comments"], "'''color'''\nx = 'color' + f'color {color}'  # color\n"),
    ],
)
def test_it_looks_only_where_it_is_told(places: list[str], after: str) -> None:
    assert replace_text(PYTHON, **{"in": places}).data == after.encode()


@pytest.mark.parametrize(
    ("path", "places", "before", "after"),
    [
        ("x.ts", ["comments"], "`colour ${colour /* colour */}`; // colour", "`colour ${colour /* color */}`; // color"),
        ("x.ts", ["strings"], "`colour ${colour}`; // colour", "`color ${colour}`; // colour"),
        ("x.go", ["strings"], "package p\nvar x = \"colour\" + `colour` + colour\n", "package p\nvar x = \"color\" + `color` + colour\n"),
        ("x.c", ["comments"], "/* colour */ int colour = 1;", "/* color */ int colour = 1;"),
        ("x.rs", ["strings"], 'fn f() { g("colour", r#"colour"#); colour() }', 'fn f() { g("color", r#"color"#); colour() }'),
        ("x.java", ["code"], 'class A { String colour = "colour"; }', 'class A { String color = "colour"; }'),
        ("x.rb", ["strings"], "puts \"colour #{colour}\", 'colour'", "puts \"color #{colour}\", 'color'"),
        ("x.yaml", ["comments"], "# colour\na: colour\n", "# color\na: colour\n"),
        ("README.md", ["docs"], "colour", "color"),
        ("CHANGES", ["docs"], "colour", "color"),
        ("a/b/guide.rst", ["docs"], "colour", "color"),
    ],
)  # fmt: skip
def test_it_knows_the_parts_of_other_files(path: str, places: list[str], before: str, after: str) -> None:
    assert replace_text(before, path, **{"in": places}).data == after.encode()


@pytest.mark.parametrize(
    ("places", "wanted"),
    [
        (None, ["a.py", "a.cfg", "README.md", "x.js"]),
        (["docs"], ["a.py", "README.md"]),
        (["code"], ["a.py", "a.cfg", "x.js"]),
        (["docs", "comments"], ["a.py", "a.cfg", "README.md", "x.js"]),
    ],
)
def test_it_wants_the_files_that_can_have_such_parts(places: list[str] | None, wanted: list[str]) -> None:
    given = {"find": "a", "replace": "b"} | ({"in": places} if places else {})

    assert [path for path in ("a.py", "a.cfg", "README.md", "x.js") if TEXT.wants(given, path)] == wanted


@pytest.mark.parametrize(
    ("given", "before", "after"),
    [
        ({}, "colour colourful\n", "color colorful\n"),
        ({"words": True}, "colour colourful _colour colour.\n", "color colourful _colour color.\n"),
        ({"words": True}, b"caf colour\xe9 colour\n", b"caf colour\xe9 color\n"),
        ({"find": "a.b", "replace": "c"}, "a.b axb", "c axb"),
        ({"find": r"(\w+)=(\w+)", "replace": r"\2=\1", "regex": True}, "a=b c=d", "b=a d=c"),
        ({"find": r"^x", "replace": "y", "regex": True}, "x\nx x\n", "y\ny x\n"),
        ({"find": r"x$", "replace": "y", "regex": True}, "x\r\nx\n", "x\r\ny\n"),
        ({"find": r"x$", "replace": "y", "regex": True, "words": True}, "ax\nx\n", "ax\ny\n"),
        ({"find": "a.*b", "replace": "Z", "regex": True, "in": ["comments"]}, "a = 1  # a b\nb = a  # ab b\n", "a = 1  # Z\nb = a  # Z\n"),
        ({"find": "\n", "replace": ""}, "a\r\nb\n", "a\rb"),
    ],
)  # fmt: skip
def test_it_replaces_text_and_expressions(
    given: dict[str, Any], before: str | bytes, after: str | bytes
) -> None:
    wanted = after.encode() if isinstance(after, str) else after

    assert replace_text(before, "a.txt" if "in" not in given else "a.py", **given).data == wanted


@pytest.mark.parametrize(
    "before",
    [
        b"\xef\xbb\xbfcolour\r\ncolour\nlast",
        b"\xe9 colour \xff\xfe",
        b"# -*- coding: latin-1 -*-\n# \xe9 colour\n",
        "\u2028colour\u0085\x0c\x1d".encode(),
    ],
)
def test_bytes_outside_of_the_matches_stay(before: bytes) -> None:
    assert replace_text(before).data == before.replace(b"colour", b"color")


def test_declared_encodings_are_respected() -> None:
    before = "# coding: latin-1\n# é\n".encode("latin-1")

    assert replace_text(before, find="é", replace="è").data == "# coding: latin-1\n# è\n".encode("latin-1")


@pytest.mark.parametrize(
    ("given", "path", "before", "line", "reason"),
    [
        ({}, "x.bin", b"\0colour", 0, "a binary file that has the text"),
        ({}, "x.txt", "colour".encode("utf-16"), 0, "a UTF-16 or UTF-32 file that has the text"),
        ({"in": ["comments"]}, "a.cfg", b"\n# colour", 2, "cannot tell comments apart in .cfg files"),
        ({"in": ["comments"]}, "Makefile", b"# colour", 1, "cannot tell comments apart in a file without an ending"),
        ({"in": ["comments"]}, "a.py", b"def f(: # colour", 1, "does not parse, so its parts cannot be told apart"),
        ({"in": ["comments"]}, "a.py", b"# \xe9 colour", 1, "is not utf-8 (line 1), so its parts cannot be told apart"),
        ({"find": "\xe9", "replace": "e"}, "a.txt", b"\xe9", 0, "is not utf-8 (line 1); only plain ASCII text can be looked for in it"),
        ({"find": "e", "replace": "\u2192"}, "a.py", b"# coding: latin-1\n# \xe9 e", 2, "file left alone: the replacement has '\u2192', which iso8859-1 cannot write"),
        ({"find": "x", "replace": "("}, "a.py", b"\nx = 1\n", 2, "file left alone: the result would not parse"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_done_is_told(
    given: dict[str, Any], path: str, before: bytes, line: int, reason: str
) -> None:
    assert left(replace_text(before, path, **given)) == [(line, reason)]


def test_a_binary_file_without_the_text_is_nobody_s_business() -> None:
    assert replace_text(b"\0", "x.bin").residue == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"find": "(", "regex": True}, "`find` is not a regular expression"),
        ({"find": "x*", "regex": True}, "matches the empty text, which is everywhere"),
        (
            {"find": "(a)", "replace": r"\2", "regex": True},
            "`replace` does not fit the expression: invalid group reference 2",
        ),
        (
            {"find": "(a)", "replace": r"\q", "regex": True},
            "`replace` does not fit the expression: bad escape",
        ),
        ({"find": "a", "replace": "a"}, "so nothing would change"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ContractError, match=said):
        TEXT.check({"find": "a", "replace": "b"} | given)


def test_backslashes_are_plain_text_without_regex() -> None:
    assert replace_text("a", "a.txt", find="a", replace=r"\1").data == rb"\1"


def test_a_rule_that_writes_what_it_looks_for_says_so() -> None:
    result = run(TEXT, {"find": "foo", "replace": "foobar"}, {"a.txt": "foo"})

    assert [(one.severity, one.text) for one in result.risks] == [
        (
            Severity.INFO,
            "What this rule writes contains what it looks for: applied to its own result it would go on.",
        )
    ]


def test_links_are_not_looked_through_and_modes_stay() -> None:
    modes = {"run.sh": "100755", "link": "120000"}
    view = DictView({"run.sh": b"colour", "link": b"colour"}, modes=modes)

    changes = TextReplace().apply({"find": "colour", "replace": "color"}, view).changes

    assert {path: (new.mode, new.data) for path, new in changes.items() if new} == {
        "run.sh": ("100755", b"color")
    }

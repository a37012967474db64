"""Damage that refactoring tools are known to do (collected cases), and that ours must not do."""

import pytest

from engines.api import Engine
from engines.lint_fix import LintFix
from engines.rename.engine import RenameSymbol
from tests.unit.engine_cases import REWRITE, TEXT, after, applied, pattern, rewrite, rewritten, run
from workspace.entries import NewFile
from workspace.view import DictView

RENAME = RenameSymbol()
RENAMING = {"symbol": "a.A.read", "to": "aread"}


def test_b10_a_section_comment_survives_the_import_below_it() -> None:
    before = "import os\n\n# Local imports\nfrom .x import token\nfrom .x import driver\n\ntoken(driver)\n"

    assert rewritten(before, "token($A)", "use($A)") == (
        "import os\n\n# Local imports\nfrom .x import driver\n\nuse(driver)\n"
    )


def test_b16_nested_matches_are_all_rewritten() -> None:
    assert rewritten("foo(foo(1))\n", "foo($A)", "bar($A)") == "bar(bar(1))\n"


@pytest.mark.parametrize("engine", [REWRITE, TEXT, LintFix()], ids=lambda one: one.contract)
def test_b17_a_file_that_is_not_utf_8_is_changed_rightly_or_told(engine: Engine) -> None:
    inputs = {
        "rewrite.pattern": pattern("foo($A)", "bar($A)"),
        "text.replace": {"find": "foo", "replace": "bar"},
        "lint.fix": {"rules": ["UP006"]},
    }
    files = {"latin.py": b"# coding: latin-1\ns = '\xe9'\nfoo(1)\n", "odd.py": b"s = '\xe9'\nfoo(1)\n"}

    result = engine.apply(inputs[engine.contract], DictView(files))

    for path, data in files.items():
        told = [one for one in result.residue if one.path == path]
        changed = result.changes.get(path)
        assert told or (changed and changed.data == data.replace(b"foo", b"bar"))


@pytest.mark.parametrize("ends", ["\r\n", "\n"])
def test_b29_one_changed_identifier_is_a_diff_of_one_line(ends: str) -> None:
    before = ends.join(["import os", "foo(1)", "x = 1", ""]).encode()

    results = [
        applied(REWRITE, pattern("foo($A)", "bar($A)"), {"a.py": before}),
        applied(TEXT, {"find": "foo", "replace": "bar", "words": True}, {"a.py": before}),
        applied(
            RENAME, {"symbol": "a.foo", "to": "bar"}, {"a.py": before.replace(b"import os", b"foo = id ")}
        ),
    ]

    assert results[:2] == [{"a.py": before.replace(b"foo", b"bar")}] * 2
    assert results[2] == {"a.py": before.replace(b"foo", b"bar").replace(b"import os", b"bar = id ")}


def test_b34_an_executable_file_stays_executable() -> None:
    view = DictView({"run.sh": b"#!/bin/sh\necho foo\n"}, modes={"run.sh": "100755"})

    change = TEXT.apply({"find": "foo", "replace": "bar"}, view).changes["run.sh"]

    assert change is not None
    assert change.mode == "100755"


def test_b36_a_link_stays_a_link_and_its_target_is_edited_once() -> None:
    view = DictView({"real.py": b"foo(1)\n", "link.py": b"real.py"}, modes={"link.py": "120000"})

    assert list(REWRITE.apply(pattern("foo($A)", "bar($A)"), view).changes) == ["real.py"]


def test_b38_only_files_of_the_snapshot_are_ever_named() -> None:
    view = DictView({"a.py": b"from typing import List\nx: List[int]\n", "pyproject.toml": b"[tool.ruff]\n"})

    result = LintFix().apply({"rules": ["UP006"], "config": "repository"}, view)

    assert list(result.changes) == ["a.py"]


def test_b48_lines_that_look_like_conflict_markers_are_plain_text() -> None:
    before = "Title\n=======\n\n<<<<<<< is how git marks a conflict: colour\n"

    assert applied(TEXT, {"find": "colour", "replace": "color"}, {"git.rst": before}) == {
        "git.rst": before.replace("colour", "color").encode()
    }


def test_replacing_a_call_keeps_the_comments_inside() -> None:
    before = "log.warn(  # one\n    'a',  # two\n    # three\n    b,\n)\n"

    assert rewritten(before, "log.warn($$$A)", "log.warning($$$A)") == before.replace("warn", "warning")


def test_a_malformed_file_is_not_rewritten_although_the_pattern_matches() -> None:
    result = rewrite("foo(1)\ndef f(:\n", "foo($A)", "bar($A)")

    assert (result.data, [one.reason for one in result.residue]) == (None, ["does not parse"])


def test_b03_an_async_method_is_renamed_with_its_calls() -> None:
    before = "class A:\n    async def read(self): ...\n    def x(self): return self.read()\n"

    assert applied(RENAME, RENAMING, {"a.py": before}) == {"a.py": before.replace("read", "aread").encode()}


def test_b04_a_receiver_with_an_annotation_is_not_missed() -> None:
    before = "class A:\n    def read(self): ...\ndef f(a: A):\n    a.read()\nb = A()\nb.read()\n"

    assert applied(RENAME, RENAMING, {"a.py": before}) == {"a.py": before.replace("read", "aread").encode()}


def test_b08_a_file_that_does_not_parse_stops_no_rename_and_is_told() -> None:
    files: dict[str, str | bytes] = {
        "a.py": "def foo(): ...\n",
        "b.py": "def broken(:\n    foo()\n",
        "c.py": "from a import foo\nfoo()\n",
    }

    result = run(RENAME, {"symbol": "a.foo", "to": "bar"}, files)

    assert after(files, result) == {
        "a.py": b"def bar(): ...\n",
        "b.py": b"def broken(:\n    foo()\n",
        "c.py": b"from a import bar\nbar()\n",
    }
    assert [(one.path, one.line, one.reason) for one in result.residue] == [
        ("b.py", 2, "not analysed: does not parse (line 1)")
    ]


@pytest.mark.parametrize(
    "before",
    [
        b"x = 1\r\ny = 2\ndef foo(): ...\r\nfoo()",
        b"\xef\xbb\xbfdef foo(): ...\r\n\r\nfoo()\r",
        b"# coding: latin-1\ns = '\xe9'; foo = 1; t = '\xe9'\r\nfoo\n",
        "s = '\U0001f40d\u2028\x0c'; foo = 1; foo\n\x0cfoo\n".encode(),
    ],
)
def test_b09_a_rename_keeps_line_ends_marks_and_encodings(before: bytes) -> None:
    got = applied(RENAME, {"symbol": "a.foo", "to": "bar"}, {"a.py": before})

    assert got == {"a.py": before.replace(b"foo", b"bar")}


def test_b34_b36_a_rename_keeps_modes_and_links() -> None:
    files = {"run.py": b"foo = 1\nfoo\n", "link.py": b"run.py", "foo": b"foo"}
    view = DictView(files, modes={"run.py": "100755", "link.py": "120000", "foo": "120000"})

    result = RENAME.apply({"symbol": "run.foo", "to": "bar", "in": ["docs", "strings", "comments"]}, view)

    assert result.changes == {"run.py": NewFile("100755", b"bar = 1\nbar\n")}

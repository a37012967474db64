"""ruff's E9 and F, before and after."""

from dataclasses import replace
from pathlib import Path

import pytest

from reviewer.lint import ruff
from schemas.words import Severity, Verdict
from tests.unit.review_cases import case_of, edit

LATIN = "# coding: latin-1\nname = 'é'\n".encode("latin-1")


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.py", b"import os\n\nx = 1\n", b"import os\n\n\n\nx = 2\n"),  # unused before, on another line now
        ("a.py", b"import os\nprint(os.sep)\n", b"import os\nprint(os.pathsep)\n"),
        ("pkg/__init__.py", b"from .a import b\n", b"from .a import c\n"),  # a package's own names
        ("a.pyi", b"import os\nx: int\n", b"import os\nx: str\n"),
        ("a.py", b"x = 1\n", b"type X[T] = list[T]\n"),  # newer syntax than ruff's own default target
        ("a.py", LATIN, LATIN.replace(b"name", b"other")),
        ("build/a.py", b"x = 1\n", b"x = 2\n"),
        ("a.py", b"def f(:\n", b"def g(:\n"),
        ("a.py", b"import os  # noqa: F401\n", b"import sys  # noqa: F401\n"),
        ("a.py", b"\xff\xfe", b"\xff\xfd"),  # no Python at all, before or after
    ],
)
def test_nothing_new_passes(tmp_path: Path, path: str, before: bytes, after: bytes) -> None:
    report = ruff(case_of(edit(before, after, path=path)), tmp_path)

    assert (report.verdict, report.findings) == (Verdict.PASS, ())


@pytest.mark.parametrize(
    ("path", "before", "after", "rule", "line"),
    [
        ("a.py", b"import os\nprint(os.sep)\n", b"import os\nprint(1)\n", "F401", 1),
        ("a.py", b"x = 1\n", b"x = 1\ny = undefined\n", "F821", 2),
        ("a.py", b"import os\nx = 1\n", b"import os\nimport sys\nx = 1\n", "F401", 2),  # one more than before
        ("build/a.py", b"x = 1\n", b"import os\n", "F401", 1),
        ("venv/lib/a.pyi", b"x: int\n", b"x: Missing\n", "F821", 1),
        ("a.py", LATIN, LATIN + b"y = undefined\n", "F821", 3),
        ("a.py", b"x = 1\n", b"x = (\n", "invalid-syntax", 0),
        ("new.py", None, b"import os\n", "F401", 1),
    ],
)
def test_what_is_new_is_found_with_its_line(
    tmp_path: Path, path: str, before: bytes | None, after: bytes, rule: str, line: int
) -> None:
    report = ruff(case_of(edit(before, after, path=path)), tmp_path)

    assert report.verdict is Verdict.FAIL
    assert {one.path for one in report.findings} == {path}
    assert any(rule in one.text for one in report.findings)
    assert not line or report.findings[0].line == line


def test_an_import_that_a_lint_rule_leaves_unused_is_told_and_no_fault(tmp_path: Path) -> None:
    before, after = b"from typing import List\nx: List[int]\n", b"from typing import List\nx: list[int]\n"

    report = ruff(replace(case_of(edit(before, after)), contract="lint.fix@1"), tmp_path)

    assert report.verdict is Verdict.PASS
    assert [(one.severity, one.path) for one in report.findings] == [(Severity.WARNING, "a.py")]
    assert "F401" in report.claim


def test_other_rules_are_strict_for_lint_fix_too(tmp_path: Path) -> None:
    case = replace(case_of(edit(b"x = 1\n", b"import os\nx = y\n")), contract="lint.fix@1")

    report = ruff(case, tmp_path)

    assert report.verdict is Verdict.FAIL
    assert [one.severity for one in report.findings] == [Severity.ERROR, Severity.WARNING]


def test_settings_of_the_repository_do_not_count(tmp_path: Path) -> None:
    settings = edit(None, b"[tool.ruff]\nexclude = ['*']\n", path="pyproject.toml")
    ignoring = edit(b"x = 1\n", b"import os\n", path="a.py")

    assert ruff(case_of(settings, ignoring), tmp_path).verdict is Verdict.FAIL


def test_other_files_are_not_for_ruff(tmp_path: Path) -> None:
    report = ruff(case_of(edit(b"a", b"import os", path="a.txt")), tmp_path)

    assert (report.verdict, report.counts) == (Verdict.PASS, {"files": 0, "unreadable": 0})


def test_a_ruff_that_fails_never_passes(tmp_path: Path) -> None:
    case = case_of(edit(b"x = 1\n", b"x = 2\n"), input={"target": "py3999"})

    assert ruff(case, tmp_path).verdict is Verdict.COULD_NOT_RUN

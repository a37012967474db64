"""Import handling for Go, JavaScript and TypeScript, and what is said about other languages."""

import pytest

from tests.unit.engine_cases import left, rewrite, rewritten

GO = ("ioutil.ReadFile($A)", "os.ReadFile($A)", 'import "os"')
GO_CALL = "\nfunc f() { ioutil.ReadFile(x) }\n"
GO_CALLED = "\nfunc f() { os.ReadFile(x) }\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('import (\n\t"fmt"\n\t"io/ioutil"\n\n\t"github.com/x/y"\n)\n', 'import (\n\t"fmt"\n\t"os"\n\n\t"github.com/x/y"\n)\n'),
        ('import "io/ioutil"\n', 'import "os"\n'),
        ('import (\n\t"io/ioutil"\n\t"os"\n)\n', 'import (\n\t"os"\n)\n'),
        ('import (\n\t"github.com/x/y"\n)\n', 'import (\n\t"os"\n\n\t"github.com/x/y"\n)\n'),
        ("", '\nimport "os"\n'),
        ('import util "io/ioutil"\n', 'import util "io/ioutil"\nimport "os"\n'),
    ],
)  # fmt: skip
def test_go_s_imports_follow(before: str, after: str) -> None:
    assert rewritten("package p\n" + before + GO_CALL, *GO, language="go", path="a.go") == (
        "package p\n" + after + GO_CALLED
    )


def test_a_go_import_that_is_used_stays() -> None:
    before = 'package p\n\nimport "io/ioutil"\n\nfunc f() { ioutil.ReadFile(x); ioutil.Other() }\n'

    assert rewritten(before, "ioutil.ReadFile($A)", "read($A)", language="go", path="a.go") == before.replace(
        "ioutil.ReadFile", "read"
    )


@pytest.mark.parametrize(
    ("before", "line", "reason"),
    [
        ('import os "x/y"\n', 4, '`os` is something else in this file (import os "x/y")'),
        ("var os = 3\n", 4, "`os` is something else there (bound in line 2)"),
        ('import unix "os"\n', 4, "os is imported as `unix` in this file"),
    ],
)
def test_a_go_match_stays_where_the_name_means_something_else(before: str, line: int, reason: str) -> None:
    assert left(rewrite("package p\n" + before + GO_CALL, *GO, language="go", path="a.go")) == [
        (line, reason)
    ]


def test_a_go_parameter_of_that_name_stops_its_own_function_only() -> None:
    result = rewrite(
        'package p\n\nimport "io/ioutil"\n\nfunc f(os int) { ioutil.ReadFile(x) }\nfunc g() { ioutil.ReadFile(x) }\n',
        *GO,
        language="go",
        path="a.go",
    )

    assert result.data == (
        b'package p\n\nimport "io/ioutil"\nimport "os"\n\nfunc f(os int) { ioutil.ReadFile(x) }\nfunc g() { os.ReadFile(x) }\n'
    )
    assert [one.line for one in result.residue] == [6]


JS = ("a($A)", "b($A)", "import { b } from 'x';")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import { a } from 'x';\n", "import { b } from 'x';\n"),
        ("import { a, c } from 'x';\n", "import { b, c } from 'x';\n"),
        ("import {\n  a,\n  c,\n} from 'x';\n", "import {\n  b,\n  c,\n} from 'x';\n"),
        ('import q from "y"\n', 'import q from "y"\nimport { b } from "x"\n'),
        ("import type { T } from 'x';\n", "import type { T } from 'x';\nimport { b } from 'x';\n"),
        ("'use strict';\n// hi\n", "'use strict';\n// hi\nimport { b } from 'x';\n\n"),
        ("import { a } from 'x'; export { a };\n", "import { a, b } from 'x'; export { a };\n"),
    ],
)
@pytest.mark.parametrize("language", ["typescript", "tsx"])
def test_javascript_s_imports_follow(before: str, after: str, language: str) -> None:
    assert rewritten(before + "a(1);\n", *JS, language=language, path="a.ts") == after + "b(1);\n"


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("const b = 3;\n", "`b` is something else in this file (bound in line 1)"),
        ("function f(b) {}\n", "`b` is something else in this file (bound in line 1)"),
        ("const { b } = y;\n", "`b` is something else in this file (bound in line 1)"),
        ("import { b } from 'y';\n", "`b` is something else in this file (from 'y')"),
        ("const a = require('x');\n", "the file uses `require`, and an import statement may not work in it"),
    ],
)
def test_a_javascript_match_stays_where_the_name_means_something_else(before: str, reason: str) -> None:
    assert left(rewrite(before + "a(1);\n", *JS, language="javascript", path="a.js")) == [(2, reason)]


def test_a_whole_import_that_goes_is_told_for_it_may_have_had_effects() -> None:
    result = rewrite("import a from 'x';\na(1);\n", "a($A)", "b($A)", language="javascript", path="a.js")

    assert result.data == b"b(1);\n"
    assert [one.text for one in result.risks] == [
        "The import of 'x' is gone; if loading it had effects, put it back."
    ]


def test_a_likely_leftover_is_told_where_imports_are_not_edited() -> None:
    result = rewrite("use a::old;\nfn f() { old(1); }\n", "old($A)", "new($A)", language="rust", path="a.rs")

    assert result.data == b"use a::old;\nfn f() { new(1); }\n"
    assert [one.text for one in result.risks] == ["The import of `old` may not be needed any more."]

"""Rules of `rewrite.pattern` that cannot work are refused before any file is read."""

import pytest

from engines.languages import language, language_of, languages
from engines.pattern import compile_rule
from engines.syntax import first_fault, parse
from engines.template import template
from schemas.errors import ContractError
from tests.unit.engine_cases import REWRITE, pattern


@pytest.mark.parametrize(
    ("match", "replace", "language_name", "said"),
    [
        ("a()", "b()", "pyton", "'pyton' is not a language that ast-grep parses; .* Did you mean 'python'"),
        ("foo(", "b()", "python", r"The pattern 'foo\(' does not parse as python, so it would match nothing"),
        ("a(); b()", "c()", "python", "is more than one piece of code"),
        ("   ", "c()", "python", "does not parse"),
        (
            "foo($ARG)",
            "bar($ARGS)",
            "python",
            r"`replace` uses \$ARGS, which `match` does not have. Did you mean \$ARG\?",
        ),
        ("foo($$$A)", "bar($A)", "python", r"A is \$\$\$A in `match`: write it so in `replace` too"),
        ("foo($A)", "bar($Abc)", "python", r"`replace` has '\$Abc', which is no hole"),
        ("foo($A)", "foo($A)", "python", "already looks like what it writes: it could never end"),
        ("foo($A, $B)", "foo($B, $A)", "python", "already looks like what it writes: it could never end"),
        ("foo($A)", "x = foo($A)\ny = foo(x)", "python", "more than one piece of code: it could never end"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(match: str, replace: str, language_name: str, said: str) -> None:
    with pytest.raises(ContractError, match=said):
        REWRITE.check(pattern(match, replace, language=language_name))


@pytest.mark.parametrize(
    ("add", "language_name", "said"),
    [
        ("timezone", "python", "'timezone' is not an import"),
        ("from datetime", "python", "'from datetime' is not a Python import"),
        ("from datetime import *", "python", "does not say which names"),
        ("", "python", "an empty line"),
        ("import os", "go", "'import os' is not a Go import"),
        ("let a = 1", "typescript", "'let a = 1' is not an import of names"),
        ("use std::fs;", "rust", "imports.add is not known for rust, only for python, go, javascript"),
    ],
)
def test_an_import_that_cannot_be_added_is_refused(add: str, language_name: str, said: str) -> None:
    with pytest.raises(ContractError, match=said):
        REWRITE.check(pattern("foo($A)", "bar($A)", add, language=language_name))


@pytest.mark.parametrize("one", languages(), ids=lambda one: one.name)
def test_ast_grep_parses_every_language_that_we_name(one: object) -> None:
    spoken = language(getattr(one, "name", ""))

    assert first_fault(parse("", spoken), spoken) is None


def test_a_language_is_found_by_alias_and_ending() -> None:
    assert [language(name).name for name in ("py", "TS", "c++", "golang")] == [
        "python",
        "typescript",
        "cpp",
        "go",
    ]
    assert {
        path: found.name if (found := language_of(path)) else None
        for path in ("a.pyi", "A.PY", "x.tsx", "Makefile", ".py")
    } == {
        "a.pyi": "python",
        "A.PY": "python",
        "x.tsx": "tsx",
        "Makefile": None,
        ".py": None,
    }


@pytest.mark.parametrize(
    ("match", "language_name", "kinds"),
    [
        ("foo($A)", "python", ["call"]),
        ("Optional[$T]", "python", ["subscript", "generic_type"]),
        ("@foo", "python", ["decorator"]),
        ("except $E: $$$B", "python", ["except_clause"]),
        ("ioutil.ReadFile($A)", "go", ["call_expression"]),
        ("foo($A)", "c", ["call_expression"]),
        ("foo.bar($A)", "java", ["method_invocation"]),
        ("$A.unwrap()", "rust", ["call_expression"]),
        ("foo($A)", "csharp", ["invocation_expression"]),
        ("foo($A)", "php", ["function_call_expression"]),
        ("Foo<$T>", "typescript", ["instantiation_expression", "generic_type"]),
    ],
)
def test_a_pattern_is_read_as_what_it_is_inside_of_code(
    match: str, language_name: str, kinds: list[str]
) -> None:
    compiled = compile_rule(pattern(match, "zzz", language=language_name))

    assert [variant.reading.kind for variant in compiled.variants] == kinds


def test_the_words_of_a_pattern_are_its_literals_longest_first() -> None:
    assert REWRITE.literals(pattern("datetime.utcnow()", "x")) == (b"datetime", b"utcnow")
    assert REWRITE.literals(pattern("$A($B)", "x")) is None


def test_nameless_holes_are_told_apart() -> None:
    found = template("f($_, $_, $$$, $_A, $$$B)")

    assert len(set(found.names())) == 5
    assert [hole.is_many for hole in found.holes] == [False, False, True, False, True]


def test_a_rule_looks_at_the_files_of_its_language() -> None:
    given = pattern("a()", "b()")

    assert [path for path in ("a.py", "a.pyi", "a.go", "README", "py") if REWRITE.wants(given, path)] == [
        "a.py",
        "a.pyi",
    ]

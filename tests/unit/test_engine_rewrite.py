"""`rewrite.pattern` on single files: what it changes, what it keeps, and what it leaves with a reason."""

import pytest

from tests.unit.engine_cases import REWRITE, left, pattern, reasons, rewrite, rewritten, run


@pytest.mark.parametrize(
    ("match", "replace", "before", "after"),
    [
        # nested matches, all of them
        ("foo($A)", "bar($A)", "foo(foo(foo(1)))", "bar(bar(bar(1)))"),
        ("foo($A)", "bar($A, $A)", "foo(foo(1))", "bar(bar(1, 1), bar(1, 1))"),
        # what the rule writes holds a match of its own, once
        ("foo($A)", "wrap(foo($A))", "foo(foo(1)); wrap(foo(2))", "wrap(foo(wrap(foo(1)))); wrap(foo(2))"),
        ("print($$$A)", "print($$$A, flush=True)", "print()\nprint(1, flush=True)", "print(flush=True)\nprint(1, flush=True)"),
        # layout and comments between what stays
        ("log.warn($$$A)", "log.warning($$$A)", "log.warn('a',  # why\n         b)", "log.warning('a',  # why\n         b)"),
        ("d.utcnow()", "d.now(utc)", "x = d.utcnow(  # naive\n)", "x = d.now(utc  # naive\n)"),
        ("f($A, strict=True)", "f($A)", "f(\n    a,\n    strict=True,\n)", "f(\n    a\n)"),
        ("super($C, $S).go($$$A)", "super().go($$$A)", "super(\n    A, self\n).go(1,  # c\n 2)", "super().go(1,  # c\n 2)"),
        ("f($$$A)", "g($$$A, x=1)", "f(a,)\nf(\n    a,\n    b,  # c\n)", "g(a, x=1)\ng(\n    a,\n    b, x=1  # c\n)"),
        ("$A.a($B)", "$A.b($B)", "x = (q\n     .a(1)\n     .a(2))", "x = (q\n     .b(1)\n     .b(2))"),
        # words never run together
        ("$A == None", "$A is None", "x==None\n(x)==None", "x is None\n(x) is None"),
        # an operand stays one operand
        ("f($A)", "$A + 1", "y = f(2) * 3", "y = (2 + 1) * 3"),
        ("f($A)", "$A + 1", "f(a or b)", "(a or b) + 1"),
        ("not_($A)", "not $A", "x = not_(a) == b", "x = (not a) == b"),
        ("f($A)", "g(x=$A)", "f(a := 1)", "g(x=(a := 1))"),
        # lines that lose their brackets
        ("t.eq($A, $B)", "assert $A == $B", "t.eq(\n    a,\n    b,\n)", "assert a == b"),
        ("t.eq($A, $B)", "assert $A == $B", "t.eq(\n    a\n    + c,\n    b)", "assert (a\n    + c) == b"),
        # the same thing twice
        ("isinstance($X, a) or isinstance($X, b)", "isinstance($X, (a, b))", "isinstance(x.y, a) or isinstance(x.y, b)\nisinstance(x, a) or isinstance(y, b)", "isinstance(x.y, (a, b))\nisinstance(x, a) or isinstance(y, b)"),
        # annotations are code too
        ("Opt[$T]", "$T | None", "x: List[Opt[int]] = Opt[str]", "x: List[int | None] = str | None"),
        # statements: depth of lines, strings of several lines
        ("with $F() as $G:\n    $$$B", "$G = $F()\n$$$B", "if x:\n    with f() as y:\n        a('''\n z''')\n        # c\n        b()\n", "if x:\n    y = f()\n    a('''\n z''')\n    # c\n    b()\n"),
        ("def $F($$$A): $$$B", "def $F($$$A, **kw): $$$B", "async def f(a):\n    pass", "async def f(a, **kw):\n    pass"),
        ("@old($A)", "@new($A)", "@old(1)\ndef f(): pass", "@new(1)\ndef f(): pass"),
        # removal
        ("log($$$A)", "", "def f():\n    log(1)\n    x()\n    log(2)  # note\n", "def f():\n    x()\n    # note\n"),
        ("log($$$A)", "", "def f():\n    log(1)\n    log(2)\n", "def f():\n    pass\n"),
        ("log($$$A)", "", "log(1); x(); log(2)\n", "x()\n"),
        ("@old", "", "@old\n@new\ndef f(): pass\n", "@new\ndef f(): pass\n"),
        # imports are no expressions, attributes and keywords are no names
        ("unicode", "str", "import a.unicode\nf(unicode, unicode=1, x=y.unicode)", "import a.unicode\nf(str, unicode=1, x=y.unicode)"),
        ("import six", "import five", "import six\nsix.x", "import five\nsix.x"),
        # quotes are part of the pattern
        ("f('a')", "g()", "f('a'); f(\"a\")", "g(); f(\"a\")"),
        # two readings of one place
        ("print $A", "print($A)", "print 'x'\n", "print('x')\n"),
    ],
)  # fmt: skip
def test_a_file_becomes_what_the_rule_says(match: str, replace: str, before: str, after: str) -> None:
    assert rewritten(before, match, replace) == after


@pytest.mark.parametrize(
    ("language", "path", "match", "replace", "before", "after"),
    [
        ("javascript", "a.js", "console.log($$$A)", "", "a();\nconsole.log(1);\nfor (;;) { console.log(2) }\n", "a();\nfor (;;) { }\n"),
        ("javascript", "a.js", "wrap($A)", "$A", "function f() {\n  return wrap(\n    a\n  );\n}\n", "function f() {\n  return a;\n}\n"),
        ("typescript", "a.ts", "$A as Foo", "<Foo>$A", "x = (a + b) as Foo;", "x = <Foo>(a + b);"),
        ("go", "a.go", "ioutil.Discard", "io.Discard", "package p\n\nfunc f() { g(ioutil.Discard) }\n", "package p\n\nfunc f() { g(io.Discard) }\n"),
        ("c", "a.c", "foo($A)", "bar($A, 0)", "int f() { return foo(foo(1)); }\n", "int f() { return bar(bar(1, 0), 0); }\n"),
        ("java", "A.java", "foo.bar($A)", "foo.baz($A)", "class A { void f() { foo.bar(/* c */ 1); } }", "class A { void f() { foo.baz(/* c */ 1); } }"),
        ("rust", "a.rs", "$A.unwrap()", "$A?", "fn f() { x.unwrap().unwrap(); }", "fn f() { x??; }"),
        ("ruby", "a.rb", "foo($A)", "bar($A)", "x = foo(1)\n", "x = bar(1)\n"),
    ],
)  # fmt: skip
def test_it_works_in_other_languages(
    language: str, path: str, match: str, replace: str, before: str, after: str
) -> None:
    assert rewritten(before, match, replace, language=language, path=path) == after


@pytest.mark.parametrize(
    ("match", "replace", "before", "reason"),
    [
        ("super($C, $S)", "super()", "super(A,  # why\n      self)", "a comment inside would be lost"),
        ("t.eq($A, $B)", "assert $A == $B", "t.eq(\n    a,  # why\n    b)", "a comment inside would be lost"),
        ("f($A)", "$A.x", "f(*a)", "in parentheses or not, it would mean something else there"),
        ("f($A)", "$A + 1", "f(x=1)", "in parentheses or not, it would mean something else there"),
        ("f($A)", "assert $A", "x = f(1)", "the result would not parse"),
        ("f($A)", 'g($A, "x")', 'y = f"{f(1)}"', "it stands in an f-string, which cannot hold the replacement's quotes"),
        ("Opt[$T]", "$T | None", "x: Opt['A'] = 1", "text in quotes cannot stand beside `|`"),
        ("old", "new", "old = 1", "`old` is bound here, not used"),
        ("def $F(): $$$B", "def $F(x):\n    $$$B", "async def f():\n    pass", "it has 'async', which the pattern does not say"),
        ("log($A)", "", "x = log(1)", "only a statement in a block can be removed"),
    ],
)  # fmt: skip
def test_a_match_that_would_be_harmed_is_left(match: str, replace: str, before: str, reason: str) -> None:
    assert left(rewrite(before, match, replace)) == [(1, reason)]


def test_what_is_fine_is_changed_beside_what_is_left() -> None:
    result = rewrite("a = f(1)\nb = f(*x)\nc = f(2)\n", "f($A)", "$A + 1")

    assert result.data == b"a = 1 + 1\nb = f(*x)\nc = 2 + 1\n"
    assert (result.sites, reasons(result.residue)) == (
        2,
        [(2, "in parentheses or not, it would mean something else there")],
    )


def test_a_body_of_javascript_is_not_replaced_by_its_neighbour() -> None:
    result = rewrite("if (a) log(1);\nb();\n", "log($A)", "", language="javascript", path="a.js")

    assert left(result) == [(1, "only a statement in a block can be removed")]


def test_a_rule_that_matches_what_it_wrote_leaves_the_file() -> None:
    result = rewrite("x = 1\nf(f)(f)", "f($A)($B)", "$A($B)($B)")

    assert left(result) == [(2, "file left alone: the rule matches what it wrote, again and again")]


def test_a_rule_that_grows_without_end_leaves_the_file() -> None:
    result = rewrite("f(f)(f)", "f($A)($B)", "$A($B)($B)($B)")

    assert left(result) == [(1, "file left alone: the rule matches what it wrote, again and again")]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (b"def f(:\n    foo(1)\n", [(1, "does not parse")]),
        (b"x = 1\nif foo(1):\n\n", [(2, "does not parse")]),
        (b"# coding: latin-1\ns = '\xe9'\nfoo(1)\n", None),
        (b"s = '\xe9'\nfoo(1)\n", [(0, "is not utf-8 (line 1)")]),
        (b"# coding: ascii\ns = '\xe9'\nfoo(1)\n", [(0, "is not ascii (line 2)")]),
        (b"# coding: klingon\nfoo(1)\n", [(0, "declares the encoding 'klingon', which is unknown")]),
        (
            b"# coding: rot13\nfoo(1)\n",
            [(0, "declares the encoding 'rot13 (no text encoding)', which is unknown")],
        ),
        ("foo(1)\n".encode("utf-16"), [(0, "is UTF-16 or UTF-32")]),
    ],
)
def test_a_file_that_cannot_be_read_or_parsed_is_told(
    before: bytes, expected: list[tuple[int, str]] | None
) -> None:
    result = rewrite(before, "foo($A)", "bar($A)")

    if expected is None:
        assert result.data == before.replace(b"foo", b"bar")
    else:
        assert left(result) == expected


def test_a_broken_file_without_the_pattern_s_words_is_nobody_s_business() -> None:
    assert rewrite("def f(:\n", "foo($A)", "bar($A)").residue == ()


@pytest.mark.parametrize(
    "before",
    [
        b"\xef\xbb\xbfx = 1\r\nfoo(1)\r\n",
        b"x = 1\r\ny = 2\nfoo(1)\r\nz = 3",
        b"foo(1)",
        b"foo(1)\n\n\n\n",
        b"# coding: cp1252\n# \x80\nfoo('\x80')\n",
        b"x = '\xf0\x9f\x98\x80'; foo(1)\t\n\x0cfoo(2)\n",
    ],
)
def test_bytes_outside_of_the_matches_stay(before: bytes) -> None:
    assert rewrite(before, "foo($A)", "bar($A)").data == before.replace(b"foo", b"bar")


def test_new_lines_take_the_file_s_line_end() -> None:
    result = rewrite(b"if a:\r\n    foo(1)\r\n", "foo($A)", "bar($A)\nbaz($A)")

    assert result.data == b"if a:\r\n    bar(1)\r\n    baz(1)\r\n"


def test_a_python_error_that_the_parser_forgives_is_seen() -> None:
    # ast-grep's grammar takes a positional argument behind a keyword; Python does not.
    result = rewrite("f(a, b=1)\n", "f($A, $B)", "f2($B, $A)")

    assert left(result) == [
        (
            1,
            "file left alone: Python would refuse the result: positional argument follows keyword argument (line 1)",
        )
    ]


def test_the_account_names_files_sites_and_engine() -> None:
    files = {"a.py": "foo(1); foo(2)\n", "b.py": "x\n", "c.py": "def f(: foo\n", "d.txt": "foo(1)\n"}

    result = run(REWRITE, pattern("foo($A)", "bar($A)"), files)

    assert result.output() == {"sites": 2, "files_seen": 3}
    assert {path: new.data if new else None for path, new in result.changes.items()} == {
        "a.py": b"bar(1); bar(2)\n"
    }
    assert [(one.path, one.hunk, one.engine) for one in result.provenance] == [
        ("a.py", 2, f"ast-grep {REWRITE.version}")
    ]
    assert [(one.path, one.reason) for one in result.residue] == [("c.py", "does not parse")]


def test_an_executable_file_stays_executable() -> None:
    from workspace.view import DictView

    view = DictView({"run.py": b"foo(1)\n"}, modes={"run.py": "100755"})

    change = REWRITE.apply(pattern("foo($A)", "bar($A)"), view).changes["run.py"]

    assert change is not None
    assert change.mode == "100755"


def test_a_symbolic_link_is_not_looked_through() -> None:
    from workspace.view import DictView

    view = DictView({"real.py": b"foo(1)\n", "link.py": b"foo(1)"}, modes={"link.py": "120000"})

    assert list(REWRITE.apply(pattern("foo($A)", "bar($A)"), view).changes) == ["real.py"]


@pytest.mark.parametrize(
    ("before", "match", "replace", "why"),
    [
        (
            "async def f():\n    for x in y:\n        yield x\n",
            "for $X in $Y:\n    yield $X",
            "yield from $Y",
            "`yield from` cannot stand in an async function",
        ),
        ("def f():\n    g(1)\n", "g($X)", "await g($X)", "`await` can stand in an async function only"),
        ("g(1)\n", "g($X)", "await g($X)", "`await` can stand in an async function only"),
        ("async def f(x=g(1)): ...\n", "g($X)", "await g($X)", "`await` can stand in an async function only"),
        ("class A:\n    g(1)\n", "g($X)", "return $X", "`return` can stand in a function only"),
    ],
)
def test_a_word_goes_only_into_a_function_that_can_have_it(
    before: str, match: str, replace: str, why: str
) -> None:
    assert [reason for _, reason in left(rewrite(before, match, replace))] == [why]


def test_a_place_that_cannot_have_the_word_keeps_no_other_back() -> None:
    loop = "    for x in y:\n        yield x\n"
    result = rewrite(
        f"def f():\n{loop}\n\nasync def g():\n{loop}", "for $X in $Y:\n    yield $X", "yield from $Y"
    )

    assert result.data == f"def f():\n    yield from y\n\n\nasync def g():\n{loop}".encode()
    assert reasons(result.residue) == [(6, "`yield from` cannot stand in an async function")]


def test_a_word_goes_into_the_function_that_it_fits() -> None:
    inside = "async def f():\n    def g():\n        h(1)\n    await h(2)\n    h(3)\n"

    assert (
        rewritten("async def f():\n    g(1)\n", "g($X)", "await g($X)") == "async def f():\n    await g(1)\n"
    )
    assert rewritten(inside, "await h($X)", "await k($X)") == inside.replace("await h", "await k")

"""What holds for every file: bytes outside of matches stay, twice is once, and how work is cut does not matter."""

from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engines.api import Engine
from schemas.scope import Reach, Shard
from tests.unit.engine_cases import REWRITE, TEXT, after, pattern, rewrite, run
from workspace.view import DictView

quick = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Pieces of Python of which any sequence is a file. `foo` is what the rules look for, `bar` is written by them only.
line_ends = st.sampled_from(["\n", "\r\n"])
arguments = st.recursive(
    st.sampled_from(["1", "x.y", "'é'", '"foo(1)"', "a or b", "lambda: 0", "[1, 2]", "x if y else z", "*args", "k=1", "f'{x}'", ""]),
    lambda inner: st.builds(
        lambda name, items, layout: f"{name}({layout}{', '.join(one for one in items if one)}{layout})",
        st.sampled_from(["foo", "foo", "g", "x.foo"]),
        st.lists(inner, max_size=2),
        st.sampled_from(["", " ", "\n    ", "  # foo(1)\n    "]),
    ),
    max_leaves=6,
)  # fmt: skip
calls = arguments.filter(lambda text: text.startswith(("foo(", "g(", "x.foo(")))
lines = st.one_of(
    calls.map(lambda call: f"y = {call}"),
    calls.map(lambda call: f"if x:\n  {call}"),
    st.sampled_from(["", "# foo(1) é", "x = 'foo(1)'", "import foo as f", "from foo import q", "x = 1;  y = 2", "'''\n foo(1)\n'''"]),
)  # fmt: skip
files = st.builds(
    lambda parts, marks, last: "".join(part.replace("\n", mark) + mark for part, mark in zip(parts, marks, strict=False)) + last,
    st.lists(lines, max_size=8),
    st.lists(line_ends, min_size=8, max_size=8),
    st.sampled_from(["", "foo(1)", "# end"]),
)  # fmt: skip

RENAME = pattern("foo($$$A)", "bar($$$A)")


@quick
@given(files)
def test_a_pattern_changes_nothing_but_its_matches(text: str) -> None:
    result = rewrite(text.encode(), "foo($$$A)", "bar($$$A)")

    assume(result.data is not None)
    assert result.data is not None
    assert result.data.replace(b"bar(", b"foo(") == text.encode()
    assert result.data.count(b"bar(") == result.sites


@quick
@given(files)
def test_a_pattern_applied_twice_is_applied_once(text: str) -> None:
    for match, replace in (
        ("foo($$$A)", "bar($$$A)"),
        ("foo($A)", "wrap(foo($A))"),
        ("foo($$$A)", "foo($$$A, bar=1)"),
        ("foo($A)", "not $A"),
        ("foo($A)", "$A + 1"),
        ("foo($$$A)", ""),
    ):
        once = rewrite(text.encode(), match, replace)
        data = text.encode() if once.data is None else once.data

        assert rewrite(data, match, replace).data is None


@quick
@given(files, st.sampled_from(["utf-8", "latin-1", "cp1252"]), st.booleans())
def test_a_pattern_keeps_encodings_and_marks(text: str, encoding: str, mark: bool) -> None:
    if encoding == "utf-8":
        data = (b"\xef\xbb\xbf" if mark else b"") + text.encode()
    else:
        data = f"# coding: {encoding}\n{text}".encode(encoding)

    result = rewrite(data, "foo($$$A)", "bar($$$A)")

    changed = data if result.data is None else result.data
    assert changed.replace(b"bar(", b"foo(") == data


words = st.lists(st.sampled_from([b"colour", b" ", b"\r\n", b"\n", b"colours", b"\xe9", b"\xff", b"\xef\xbb\xbf", b"\0", "é".encode(), b"_", b"x"]), max_size=12)  # fmt: skip


@quick
@given(words.map(b"".join), st.booleans())
def test_text_changes_nothing_but_its_matches(data: bytes, whole_words: bool) -> None:
    result = TEXT.replace({"find": "colour", "replace": "C#", "words": whole_words}, "a.txt", data)

    changed = data if result.data is None else result.data
    assert changed.replace(b"C#", b"colour") == data
    assert changed.count(b"C#") == result.sites


@quick
@given(words.map(b"".join))
def test_text_applied_twice_is_applied_once(data: bytes) -> None:
    once = TEXT.replace({"find": "colour", "replace": "color"}, "a.txt", data)

    assert TEXT.replace({"find": "colour", "replace": "color"}, "a.txt", once.data or data).data is None


paths = st.sampled_from(["a.py", "a/b.py", "a/c.py", "b.py", "é.py", "z/y/x.py", "README.md", "c.txt"])
trees = st.dictionaries(paths, st.one_of(files.map(str.encode), words.map(b"".join)), max_size=5)


def in_shards(
    engine: Engine, rule: Mapping[str, Any], tree: Mapping[str, bytes], cuts: list[str]
) -> dict[str, bytes]:
    """The tree after the rule was applied to each shard on its own, the last one first."""
    starts = ["", *sorted(set(cuts))]
    stops: list[str | None] = [*starts[1:], None]
    result = dict(tree)
    for start, stop in reversed(list(zip(starts, stops, strict=True))):
        view = DictView(tree, reach=Reach(shard=Shard(start=start, stop=stop)))
        result |= {
            path: new.data for path, new in engine.apply(rule, view).changes.items() if new is not None
        }
    return result


@quick
@given(trees, st.lists(paths, max_size=3))
def test_how_the_work_is_cut_and_in_which_order_it_is_done_does_not_matter(
    tree: dict[str, bytes], cuts: list[str]
) -> None:
    for engine, rule in (
        (REWRITE, RENAME),
        (TEXT, {"find": "foo", "replace": "bar", "in": ["comments", "docs"]}),
    ):
        assert in_shards(engine, rule, tree, cuts) == after(tree, run(engine, rule, tree))


@quick
@given(trees)
def test_the_same_input_gives_the_same_account(tree: dict[str, bytes]) -> None:
    assert run(REWRITE, RENAME, tree) == run(REWRITE, RENAME, dict(reversed(tree.items())))

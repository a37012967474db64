"""`rename.symbol` on made-up trees: only whole words change, the inverse restores the base, and twice is once."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.api import EngineResult
from engines.rename.engine import RenameSymbol
from engines.rename.proof import is_proved
from schemas.errors import ContractError
from tests.unit.engine_cases import after, run

RENAME = RenameSymbol()
PIECES = [
    "from pkg.m import old", "from pkg.m import old as x", "from pkg import m", "import pkg.m", "from .m import old", "from pkg.other import old",
    "import pkg.m as q", "old()", "m.old()", "pkg.m.old", "q.old", "y = old", "def f(old): return old", "def g(a: 'old' = old): return a", "# old",
    "'old'", "__all__ = ['old']", "older = old", "print(f'{old} old')", "class K:\n    old = old", "for z in old: old", "lambda old: old", "old.old.old",
]  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n"])
HEADS = st.sampled_from([b"", b"\xef\xbb\xbf", b"# coding: latin-1\n# \xe9\n", "# → 🐍\n".encode()])


@st.composite
def sources(draw: st.DrawFn) -> bytes:
    """A file of pieces with ends of its own for every line, or with a broken line among them."""
    pieces = draw(st.lists(st.sampled_from(PIECES), max_size=7))
    if draw(st.integers(0, 9)) == 0:
        pieces.append("def broken(: old")
    text = "".join("".join(line + draw(ENDS) for line in piece.split("\n")) for piece in pieces)
    return draw(HEADS) + text.encode()


TREES = st.fixed_dictionaries(
    {"pkg/__init__.py": sources(), "pkg/other.py": sources(), "use.py": sources(), "pkg/m.py": st.just(b"def old(): ...\r\nold = old")}
)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TREES)
@pytest.mark.timeout(300)
def test_only_whole_words_change_and_the_inverse_restores_the_base(files: dict[str, bytes]) -> None:
    given_files: dict[str, str | bytes] = dict(files)

    result = _renamed(given_files)
    if result is None:
        return
    changed = after(given_files, result)

    for path, data in files.items():
        assert re.sub(rb"\bnew\b", b"old", changed[path]) == data
    back = run(RENAME, {"symbol": "pkg.m.new", "to": "old"}, dict(changed)) if _may_go_back(changed) else None
    assert back is None or after(dict(changed), back) == files


def _renamed(files: dict[str, str | bytes]) -> EngineResult | None:
    """What the rename does; nothing for trees in which a name is imported from two places, which are refused."""
    try:
        return run(RENAME, {"symbol": "pkg.m.old", "to": "new"}, files)
    except ContractError as error:
        if "imported from elsewhere" in error.message:
            return None
        raise


def _may_go_back(files: dict[str, bytes]) -> bool:
    """Where another `old` stayed beside the new name, the way back is refused; that it is, is a promise too."""
    try:
        run(RENAME, {"symbol": "pkg.m.new", "to": "old"}, dict(files))
    except ContractError:
        assert any(re.search(rb"\bold\b", data) for data in files.values())
        return False
    return True


def test_the_same_input_gives_the_same_output() -> None:
    files: dict[str, str | bytes] = {
        "a.py": "class A:\n    def old(self): ...\ndef f(x, y: 'A'):\n    x.old() or y.old()\nf(A(), A())\n",
        "b.py": "from a import A, f\nf(A(), 1)\nA().old()\n",
    }

    results = [run(RENAME, {"symbol": "a.A.old", "to": "new"}, files) for _ in range(3)]

    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(
    ("before", "after", "holds"),
    [
        ("old older", "new older", True),
        ("old older", "new newer", False),
        ("old x", "new y", False),
        ("old new", "new new", True),
        ("old new", "new old", False),
        ("new old", "old old", False),
        ("old new", "new new new", False),
        ("old", "old", True),
        ("a.old\r\n", "a.new\n", False),
    ],
)
def test_a_tampered_file_is_not_proved(before: str, after: str, holds: bool) -> None:
    assert is_proved(before, after, "old", "new") is holds

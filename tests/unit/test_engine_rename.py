"""`rename.symbol`: what goes along with a name of a module, and what has the same name and stays."""

from typing import Any

import pytest

from engines.rename.engine import RenameSymbol
from schemas.scope import Reach, Scope
from tests.unit.engine_cases import after, reasons, run
from workspace.view import DictView

RENAME = RenameSymbol()
PLAIN = {"symbol": "pkg.m.old", "to": "new"}


def renamed(files: dict[str, str | bytes], **given: Any) -> dict[str, str]:
    """The files that changed, afterwards."""
    result = run(RENAME, PLAIN | given, files)
    everything = after(files, result)
    return {path: everything[path].decode() for path in result.changes}


def one(text: str, **given: Any) -> str:
    """A module m of pkg that defines `old` and has this text besides, afterwards."""
    start = "def old(): ...\n"
    files: dict[str, str | bytes] = {"pkg/__init__.py": "", "pkg/m.py": start + text}
    got = renamed(files, **given)["pkg/m.py"]
    assert got.startswith("def new(): ...\n")
    return got.removeprefix("def new(): ...\n")


def user(text: str, **given: Any) -> str:
    """Another file of the repository, afterwards."""
    files: dict[str, str | bytes] = {
        "pkg/__init__.py": "",
        "pkg/m.py": "def old(): ...\n",
        "pkg/other.py": "def old(): ...\n",
        "use.py": text,
    }
    return renamed(files, **given).get("use.py", text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from pkg.m import old\nold()\n", "from pkg.m import new\nnew()\n"),
        ("from pkg.m import old as o\no()\n", "from pkg.m import new as o\no()\n"),
        ("from pkg.m import (\n    a,\n    old,  # it\n)\nold\n", "from pkg.m import (\n    a,\n    new,  # it\n)\nnew\n"),
        ("import pkg.m\npkg.m.old()\n", "import pkg.m\npkg.m.new()\n"),
        ("import pkg.m as p\np.old\n", "import pkg.m as p\np.new\n"),
        ("from pkg import m\nm.old\n", "from pkg import m\nm.new\n"),
        ("from pkg import m as q\nq.old\n", "from pkg import m as q\nq.new\n"),
        ("import pkg\nimport pkg.m\npkg.m.old\n", "import pkg\nimport pkg.m\npkg.m.new\n"),
        ("from pkg.m import *\nold()\n", "from pkg.m import *\nnew()\n"),
        ("def f():\n    from pkg.m import old\n    return old\nold = 1\n", "def f():\n    from pkg.m import new\n    return new\nold = 1\n"),
        ("try:\n    from pkg.m import old\nexcept ImportError:\n    old = None\nold\n", "try:\n    from pkg.m import new\nexcept ImportError:\n    new = None\nnew\n"),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.m import old\nx: 'old'\n", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.m import new\nx: 'new'\n"),
        ("from pkg.m import old\nx = f'{old()} old {old!r}'\n", "from pkg.m import new\nx = f'{new()} old {new!r}'\n"),
        ("from pkg.m import old\n@old\ndef f(): ...\n", "from pkg.m import new\n@new\ndef f(): ...\n"),
        ("import pkg.m as a, pkg.other as b\na.old(b.old)\n", "import pkg.m as a, pkg.other as b\na.new(b.old)\n"),
        ("from pkg.m import old\nclass K(old): ...\n", "from pkg.m import new\nclass K(new): ...\n"),
        ("from pkg.m import old\nclass K:\n    old = old\nK.old\n", "from pkg.m import new\nclass K:\n    old = new\nK.old\n"),
        ("from pkg.m import old\ndef f(a=old, *, b: old): return a\n", "from pkg.m import new\ndef f(a=new, *, b: new): return a\n"),
    ],
)  # fmt: skip
def test_what_means_it_in_another_file_goes_along(before: str, after: str) -> None:
    assert user(before) == after


@pytest.mark.parametrize(
    "before",
    [
        "from pkg.other import old\nold()\n",
        "from elsewhere import old\nold()\n",
        "import pkg.other\npkg.other.old\n",
        "def f(old): return old\n",
        "old = 1\nprint(old)\n",
        "f(old=1)\n",
        "import old.m\nold.m.x\n",
        "from old import m\n",
        "older = old_ = _old = 1\n",
        "from pkg.m import x as old\nold\n",
    ],
)
def test_what_has_the_same_name_stays(before: str) -> None:
    assert user(before) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("__all__ = ['old', 'x']\n", "__all__ = ['new', 'x']\n"),
        ("__all__ += ('old',)\n__all__.append(\"old\")\n__all__.extend(['old'])\n", "__all__ += ('new',)\n__all__.append(\"new\")\n__all__.extend(['new'])\n"),
        ("x: 'old' = old\n", "x: 'new' = new\n"),
        ("def f(a: list[old], b: dict[str, old | None]) -> tuple[old, ...]:\n    x: set[old] = a\n", "def f(a: list[new], b: dict[str, new | None]) -> tuple[new, ...]:\n    x: set[new] = a\n"),
        ("def f[old](a: old) -> list[old]: return old\nclass K[old](B[old]):\n    x: old\nz: old\n", "def f[old](a: old) -> list[old]: return old\nclass K[old](B[old]):\n    x: old\nz: new\n"),
        ("type X = list[old]\n", "type X = list[new]\n"),
        ("def f(a: 'list[old]') -> \"old | None\": ...\n", "def f(a: 'list[new]') -> \"new | None\": ...\n"),
        ("from typing import Literal, cast\nx: Literal['old'] = 'old'\ncast('old', x)\n", "from typing import Literal, cast\nx: Literal['old'] = 'old'\ncast('new', x)\n"),
        ("def f():\n    global old\n    old = 2\n", "def f():\n    global new\n    new = 2\n"),
        ("def f():\n    old = 1\n    def g():\n        nonlocal old\n        old = old\n", "def f():\n    old = 1\n    def g():\n        nonlocal old\n        old = old\n"),
        ("[old for old in old]\n", "[old for old in new]\n"),
        ("[x for x in y if old(x)]\n", "[x for x in y if new(x)]\n"),
        ("f = lambda old=old: old\n", "f = lambda old=new: old\n"),
        ("class C:\n    def old(self): return old()\n    x = old\n", "class C:\n    def old(self): return new()\n    x = old\n"),
        ("old.attr = 1\ndel old\n", "new.attr = 1\ndel new\n"),
        ("x.old\n", "x.old\n"),
        ("match x:\n    case old.Y(): pass\n    case K(old=z): pass\n", "match x:\n    case new.Y(): pass\n    case K(old=z): pass\n"),
        ("old_old = old  # old\n'old'\n", "old_old = new  # old\n'old'\n"),
    ],
)  # fmt: skip
def test_the_scopes_of_python_are_respected(before: str, after: str) -> None:
    assert one(before) == after


def test_re_exports_go_along_through_every_package() -> None:
    files: dict[str, str | bytes] = {
        "src/pkg/__init__.py": "from .m import old as old\nfrom . import sub\n__all__ = ['old']\n",
        "src/pkg/m.py": "def old(): ...\n",
        "src/pkg/sub/__init__.py": "from ..m import *\n",
        "src/pkg/sub/deep.py": "from . import old\nfrom .. import old as again\nfrom ...pkg import x\n",
        "tests/test_it.py": "import pkg\nfrom pkg import old\nfrom pkg.sub import old as o\npkg.old(old, pkg.sub.old)\n",
        "stub/old.py": "",
    }

    assert renamed(files) == {
        "src/pkg/__init__.py": "from .m import new as new\nfrom . import sub\n__all__ = ['new']\n",
        "src/pkg/m.py": "def new(): ...\n",
        "src/pkg/sub/deep.py": "from . import new\nfrom .. import new as again\nfrom ...pkg import x\n",
        "tests/test_it.py": "import pkg\nfrom pkg import new\nfrom pkg.sub import new as o\npkg.new(new, pkg.sub.new)\n",
    }


def test_a_stub_goes_along_with_its_module() -> None:
    files: dict[str, str | bytes] = {
        "pkg/__init__.py": "",
        "pkg/m.py": "old = 1\n",
        "pkg/m.pyi": "old: int\n",
        "use.pyi": "from pkg.m import old as old\n",
    }

    assert renamed(files) == {
        "pkg/m.py": "new = 1\n",
        "pkg/m.pyi": "new: int\n",
        "use.pyi": "from pkg.m import new as new\n",
    }


def test_a_symbol_is_found_by_a_name_that_it_is_handed_out_under() -> None:
    files: dict[str, str | bytes] = {"pkg/__init__.py": "from .m import old\n", "pkg/m.py": "old = 1\n"}

    assert renamed(files, symbol="pkg.old") == renamed(files) == renamed(files, symbol="pkg/m.py:old")


def test_a_module_behind_a_value_is_found_by_types() -> None:
    text = "from pkg import m\nclass K:\n    mod = m\nK().mod.old()\nfor q in [m]:\n    q.old\n"

    assert user(text) == text.replace("old", "new")


def test_old_and_new_names_may_contain_each_other() -> None:
    text = "from pkg.m import old\nold_name = old\nx_old = old\n"

    assert (
        user(text, to="old_name2") == "from pkg.m import old_name2\nold_name = old_name2\nx_old = old_name2\n"
    )


def test_names_can_be_swapped_in_three_rules() -> None:
    files: dict[str, str | bytes] = {
        "a.py": "def one(): return two\ndef two(): return one\n",
        "b.py": "from a import one, two\none(two)\n",
    }
    for symbol, to in (("a.one", "spare"), ("a.two", "one"), ("a.spare", "two")):
        files = dict(after(files, run(RENAME, {"symbol": symbol, "to": to}, files)))

    assert files == {
        "a.py": b"def two(): return one\ndef one(): return two\n",
        "b.py": b"from a import two, one\ntwo(one)\n",
    }


def test_the_plain_word_is_replaced_where_the_rule_says_so() -> None:
    files: dict[str, str | bytes] = {
        "m.py": "'''old and older'''\ndef old(): 'run old()'\nx = 'pkg.old'  # old\n",
        "README.md": "Call `old`.\n",
        "x.cfg": "old = 1\n",
    }
    given = {"symbol": "m.old"}

    assert renamed(files, **given, **{"in": ["docs"]}) == {
        "m.py": "'''new and older'''\ndef new(): 'run new()'\nx = 'pkg.old'  # old\n",
        "README.md": "Call `new`.\n",
    }
    assert renamed(files, **given, **{"in": ["strings", "comments"]}) == {
        "m.py": "'''old and older'''\ndef new(): 'run old()'\nx = 'pkg.new'  # new\n",
    }


def test_every_word_that_is_left_is_told_with_its_reason() -> None:
    files: dict[str, str | bytes] = {
        "m.py": "def old():\n    '''old'''\n\n\ngetattr(m, 'old')  # old\nx.old\nold = old\n",
        "n.py": "old = 1\nold\n",
        "bad.py": "def f(:\n    old\n",
        "latin.py": b"# \xe9\nold\n",
        "README": "An old\n",
        "x.js": "old()\n",
        "x.bin": b"\0 old",
        "plain.py": "older\n",
    }

    residue = run(RENAME, {"symbol": "m.old", "to": "new"}, files).residue

    assert {path: reasons([one for one in residue if one.path == path]) for path in files} == {
        "m.py": [
            (2, "in a docstring (`in: [docs]` replaces it there)"),
            (5, "in a comment (`in: [comments]` replaces it there)"),
            (5, "in a string (`in: [strings]` replaces it there)"),
            (6, "the type of what stands before the dot is not known"),
        ],
        "n.py": [(1, "another symbol of the same name (2 places in this file)")],
        "bad.py": [(2, "not analysed: does not parse (line 1)")],
        "latin.py": [(2, "not analysed: is not utf-8 (line 1)")],
        "README": [(1, "in documentation (`in: [docs]` replaces it there)")],
        "x.js": [(1, "in a file of another kind (javascript)")],
        "x.bin": [(0, "a binary or UTF-16 file that has the name")],
        "plain.py": [],
    }


def test_uses_outside_of_the_scope_are_a_warning() -> None:
    view = DictView(
        {"m.py": b"old = 1\n", "t/use.py": b"from m import old\n"},
        reach=Reach(scopes=(Scope(exclude=("t/**",)),)),
    )

    result = RENAME.apply({"symbol": "m.old", "to": "new"}, view)

    assert list(result.changes) == ["m.py"]
    assert reasons(result.residue) == [(1, "outside of the rule's scope, and still uses the old name")]
    assert [risk.text for risk in result.risks] == [
        "1 lines outside of the rule's scope still use old, and will not find it."
    ]


def test_what_was_done_is_accounted_for() -> None:
    result = run(
        RENAME,
        {"symbol": "m.old", "to": "new", "in": ["comments"]},
        {"m.py": "old = 1  # old new\n", "n.py": "x\n"},
    )

    assert (result.output(), [(one.path, one.hunk) for one in result.provenance]) == (
        {
            "sites": 2,
            "files_seen": 2,
            "symbol": "m.old",
            "decided_by": {"scopes": 1, "words": 1},
            "proof": {"holds": True, "files": 1, "had_new_name": ["m.py"]},
        },
        [("m.py", 2)],
    )

"""`alias: deprecated`: the old name goes on working, and says that it is old."""

import warnings
from types import ModuleType

import pytest

from engines.rename.engine import RenameSymbol
from schemas.errors import ContractError
from tests.unit.engine_cases import after, run

RENAME = RenameSymbol()


def renamed(text: str, symbol: str = "m.old") -> str:
    """A module m afterwards."""
    given = {"symbol": symbol, "to": "new", "alias": "deprecated"}
    return after({"m.py": text}, run(RENAME, given, {"m.py": text}))["m.py"].decode()


def executed(text: str) -> ModuleType:
    module = ModuleType("m")
    exec(compile(text, "m.py", "exec"), module.__dict__)
    return module


def test_a_module_hands_out_the_same_object_under_the_old_name() -> None:
    module = executed(renamed("class old: ...\n"))

    with pytest.warns(DeprecationWarning, match="old is deprecated, use new"):
        assert module.old is module.new
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        assert module.other


def test_the_alias_stands_at_the_end_in_the_lines_of_the_file() -> None:
    assert renamed("old = 1\r\n") == (
        "new = 1\r\n\r\n\r\ndef __getattr__(name):\r\n"
        '    if name == "old":\r\n        import warnings\r\n\r\n'
        '        warnings.warn("old is deprecated, use new", DeprecationWarning, stacklevel=2)\r\n'
        "        return new\r\n"
        '    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")\r\n'
    )


def test_packages_that_hand_it_out_keep_the_old_name_too() -> None:
    files: dict[str, str | bytes] = {
        "p/__init__.py": "from .m import old as old\n",
        "p/m.py": "old = 1\n",
        "p/user.py": "from .m import old\n",
    }

    result = run(RENAME, {"symbol": "p.m.old", "to": "new", "alias": "deprecated"}, files)

    with_alias = [path for path, file in result.changes.items() if file and b"__getattr__" in file.data]
    assert with_alias == ["p/__init__.py", "p/m.py"]


@pytest.mark.parametrize(
    ("member", "use"),
    [
        ("    def old(self, a, b=2): return a, b", "(1, b=3)"),
        ("    def old(self, a, b=2):\n        return a, b  # them\n    x = 1", "(1, b=3)"),
        ("    @classmethod\n    def old(cls, a, b=2): return a, b", "(1, b=3)"),
        ("    @staticmethod\n    def old(a, b=2): return a, b", "(1, b=3)"),
        ("    @property\n    def old(self): return 1, 3", ""),
    ],
)
def test_a_method_calls_the_new_one_and_warns(member: str, use: str) -> None:
    module = executed(renamed(f"class K:\n{member}\n", "m.K.old"))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = eval(f"K().old{use}", module.__dict__)

    assert (got, eval(f"K().new{use}", module.__dict__)) == ((1, 3), (1, 3))
    assert [str(one.message) for one in caught] == ["K.old is deprecated, use new"]


def test_only_the_highest_class_of_a_family_gets_the_alias() -> None:
    text = "class B:\n\tdef old(self): return 1\nclass K(B):\n\tdef old(self): return 2\n"

    got = renamed(text, "m.K.old")

    assert got.count("def old(") == 1
    with pytest.warns(DeprecationWarning, match="B.old is deprecated"):
        assert executed(got).K().old() == 2


@pytest.mark.parametrize(
    ("text", "symbol", "told"),
    [
        ("def __getattr__(name): ...\nold = 1\n", "m.old", "m.py:1: the module has a `__getattr__` already"),
        ("class K:\n    old = 1\n", "m.K.old", "m.py: K.old is no method"),
        ("class K:\n    @property\n    def old(self): ...\n    @old.setter\n    def old(self, v): ...\n", "m.K.old", "decorated by"),
    ],
)  # fmt: skip
def test_an_alias_that_cannot_be_is_refused(text: str, symbol: str, told: str) -> None:
    with pytest.raises(ContractError) as caught:
        renamed(text, symbol)

    assert told in str(caught.value)

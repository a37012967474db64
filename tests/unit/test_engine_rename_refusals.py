"""`rename.symbol`: what is refused, with the place and what to do."""

import pytest

from engines.rename.engine import RenameSymbol
from schemas.errors import ContractError
from tests.unit.engine_cases import run

RENAME = RenameSymbol()


def refused(text: str, to: str = "new", symbol: str = "m.old", **files: str) -> str:
    """What the rename of `old` in a module m says."""
    with pytest.raises(ContractError) as caught:
        run(
            RENAME,
            {"symbol": symbol, "to": to},
            {"m.py": text, **{f"{name}.py": data for name, data in files.items()}},
        )
    return str(caught.value)


@pytest.mark.parametrize(
    ("symbol", "to", "told"),
    [
        ("m.old", "class", "'class' is a keyword of Python"),
        ("m.old", "a b", "'a b' is no identifier."),
        ("m.old", "m.new", "`to` is the new name alone, without its module."),
        ("m.old", "ﬁx", "is no identifier"),
        ("m.old", "old", "The old and the new name are both 'old'"),
        ("old", "new", "Write it as package.module.name or path/to/file.py:name."),
        ("m.K.__init__", "new", "__init__ is a name that Python itself looks for."),
        ("m.olt", "new", "m.py does not define 'olt'. Did you mean 'old'?"),
        ("n.old", "new", "There is no module for 'n.old' in this repository. Did you mean m.old?"),
        ("n.py:old", "new", "There is no Python file 'n.py'. Did you mean 'm.py'?"),
        ("m.K.methot", "new", "K in m.py does not itself define 'methot'. Did you mean 'method'?"),
        ("m.old.x", "new", "old in m.py is no class."),
        ("m.dumps", "new", "'dumps' in m.py comes from outside of this repository."),
    ],
)  # fmt: skip
def test_names_that_cannot_be_are_refused(symbol: str, to: str, told: str) -> None:
    text = "from json import dumps\nold = 1\nclass K:\n    def method(self): ...\n"

    assert told in refused(text, to, symbol)


def test_a_module_is_no_symbol() -> None:
    with pytest.raises(ContractError, match=r"pkg\.m is a module"):
        run(RENAME, {"symbol": "pkg.m", "to": "n"}, {"pkg/__init__.py": "", "pkg/m.py": ""})


@pytest.mark.parametrize(
    ("text", "files", "told"),
    [
        ("old = 1\n\ndef new(): ...\n", {}, "m.py:3: 'new' exists there already, beside old."),
        ("old = 1\n", {"use": "from m import old\nnew = 2\n"}, "use.py:2: 'new' exists there already, beside old."),
        ("old = 1\n", {"use": "from m import old\ndef f(new):\n    return old, new\n"}, "use.py:2: 'new' would hide the new name at line 3."),
        ("old = 1\n", {"use": "from m import old\n[old for new in x]\n"}, "use.py:2: 'new' would hide the new name at line 2."),
        ("old = 1\nprint(new)\n", {}, "m.py:2: 'new' means something else there, which the new name would hide."),
        ("def f():\n    new = 1\nold = f\n", {}, ""),
    ],
)  # fmt: skip
def test_a_name_that_is_taken_is_refused_with_the_place(text: str, files: dict[str, str], told: str) -> None:
    if told:
        assert told in refused(text, **files)
    else:
        assert run(RENAME, {"symbol": "m.old", "to": "new"}, {"m.py": text}).sites == 1


def test_a_builtin_that_is_used_there_is_not_hidden() -> None:
    assert "m.py:2: 'len' means something else there" in refused("old = 1\nlen('a')\n", "len")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("class K:\n    def old(self): ...\n    new = 1\n", "m.py:3: 'new' exists there already"),
        ("class B:\n    def new(self): ...\nclass K(B):\n    def old(self): ...\n", "m.py:2: 'new' exists there already, in the same classes."),
        ("class K:\n    def old(self): ...\nclass D(K):\n    def __init__(self): self.new = 1\n", "m.py:4: 'new' exists in a class that inherits from it."),
    ],
)  # fmt: skip
def test_a_member_that_is_taken_is_refused_with_the_place(text: str, told: str) -> None:
    assert told in refused(text, symbol="m.K.old")


def test_a_module_of_the_package_is_not_hidden() -> None:
    files: dict[str, str | bytes] = {"p/__init__.py": "old = 1\n", "p/new.py": ""}

    with pytest.raises(ContractError, match=r"p/new\.py:1: 'new' is a module of the same package"):
        run(RENAME, {"symbol": "p.old", "to": "new"}, files)


def test_a_definition_that_cannot_be_read_is_refused() -> None:
    assert "m.py, which defines m.old, does not parse (line 2)." in refused("old = 1\ndef f(:\n")


@pytest.mark.parametrize(
    ("text", "files", "told"),
    [
        ("try:\n    import old\nexcept ImportError:\n    old = None\n", {}, "m.py:2: the same name is also imported from elsewhere. Give that import an `as` first"),
        ("try:\n    from json import old\nexcept ImportError:\n    def old(): ...\n", {}, "m.py:2: the same name is also imported from elsewhere."),
        ("old = 1\n", {"use": "try:\n    from m import old\nexcept ImportError:\n    from n import old\n"}, "use.py:4: the same name is also imported"),
    ],
)  # fmt: skip
def test_a_name_that_is_imported_from_elsewhere_too_is_refused(
    text: str, files: dict[str, str], told: str
) -> None:
    assert told in refused(text, **files)


def test_an_import_with_an_alias_goes_along() -> None:
    text = "try:\n    from json import dumps as old\nexcept ImportError:\n    def old(): ...\n"

    assert run(RENAME, {"symbol": "m.old", "to": "new"}, {"m.py": text}).sites == 2

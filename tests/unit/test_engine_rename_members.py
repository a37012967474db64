"""`rename.symbol`: methods and attributes, by the classes that share them and by what is known of receivers."""

from typing import Any

import pytest

from engines.rename.engine import RenameSymbol
from schemas.errors import ContractError
from tests.unit.engine_cases import after, reasons, run

RENAME = RenameSymbol()
UNKNOWN = "the type of what stands before the dot is not known"


def renamed(files: dict[str, str | bytes], symbol: str = "a.A.read", to: str = "aread") -> dict[str, str]:
    """All files, afterwards."""
    given: dict[str, Any] = {"symbol": symbol, "to": to}
    return {path: data.decode() for path, data in after(files, run(RENAME, given, files)).items()}


def test_overrides_go_along_and_classes_beside_stay() -> None:
    files: dict[str, str | bytes] = {
        "a.py": "class A:\n    async def read(self): return self.read()\n",
        "b.py": "import a\nclass B(a.A):\n    async def read(self): return await super().read()\nclass C(B): pass\n",
        "c.py": "from b import C\nclass D(C):\n    def read(self): ...\nclass N:\n    def read(self): return self.read()\nD().read()\nN().read()\n",
    }  # fmt: skip

    assert renamed(files) == {
        "a.py": "class A:\n    async def aread(self): return self.aread()\n",
        "b.py": "import a\nclass B(a.A):\n    async def aread(self): return await super().aread()\nclass C(B): pass\n",
        "c.py": "from b import C\nclass D(C):\n    def aread(self): ...\nclass N:\n    def read(self): return self.read()\nD().aread()\nN().read()\n",
    }  # fmt: skip


def test_an_override_as_the_symbol_takes_its_base_along() -> None:
    files: dict[str, str | bytes] = {
        "a.py": "class Z:\n    def read(self): ...\nclass A(Z):\n    def read(self): ...\nclass S(Z):\n    def read(self): ...\n"
    }

    assert renamed(files) == {"a.py": str(files["a.py"]).replace("read", "aread")}


def test_classes_that_meet_in_an_heir_share_the_member() -> None:
    files: dict[str, str | bytes] = {
        "a.py": "class A:\n    def read(self): ...\nclass M:\n    def read(self): ...\nclass H(M, A): ...\n"
    }

    assert renamed(files) == {"a.py": str(files["a.py"]).replace("read", "aread")}


@pytest.mark.parametrize(
    "use",
    [
        "def f(x: A): x.read()",
        "def f(x: 'A'): x.read()",
        "def f(x): x.read()\nf(A())",
        "x = A()\nx.read()",
        "for x in [A()]: x.read()",
        "{'k': A()}['k'].read()",
        "def g() -> A: ...\ng().read()",
        "A.read(A())",
        "f'{A().read()}'",
        "x = A().read\nx()",
        "class K:\n    def __init__(self, a: A): self.a = a\n    def m(self): self.a.read()",
        "class K(A):\n    def m(self): return super().read() or self.read",
        "with A() as x: x.read()",
        "class A2(A):\n    def __enter__(self): return self\nwith A2() as x: x.read()",
        "def f(x: A | None):\n    if x: x.read()",
    ],
)
def test_receivers_are_known_by_their_types(use: str) -> None:
    head = "from a import A\n"
    files: dict[str, str | bytes] = {"a.py": "class A:\n    def read(self): ...\n    def __enter__(self): return A()\n    def __exit__(self, *a): ...\n", "use.py": f"{head}{use}\n"}  # fmt: skip

    assert renamed(files)["use.py"] == f"{head}{use}\n".replace("read", "aread")


def test_self_of_a_mixin_is_what_its_heirs_are() -> None:
    files: dict[str, str | bytes] = {
        "a.py": "class A:\n    def read(self): ...\nclass M:\n    def m(self): return self.read()\nclass H(M, A): ...\n",
        "b.py": "class M2:\n    def m(self): return self.read()\nclass H2(M2, dict): ...\n",
    }

    assert renamed(files) == {"a.py": str(files["a.py"]).replace("read", "aread"), "b.py": files["b.py"]}


def test_a_receiver_that_nobody_knows_is_left_and_told() -> None:
    files: dict[str, str | bytes] = {"a.py": "class A:\n    def read(self): ...\ndef f(x): x.read()\n"}

    result = run(RENAME, {"symbol": "a.A.read", "to": "aread"}, files)

    assert after(files, result) == {"a.py": b"class A:\n    def aread(self): ...\ndef f(x): x.read()\n"}
    assert reasons(result.residue) == [(3, f"{UNKNOWN}; no other class of this repository has read")]
    assert "1 places may mean a.A.read" in result.risks[0].text


def test_a_receiver_that_may_be_something_else_is_left_and_told() -> None:
    text = "class A:\n    def read(self): ...\nclass N:\n    def read(self): ...\ndef f(x: A | N): x.read()\n"

    result = run(RENAME, {"symbol": "a.A.read", "to": "aread"}, {"a.py": text})

    assert reasons(result.residue) == [
        (4, "another symbol of the same name"),
        (5, "may also mean what a.py:4 defines"),
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("class A:\n    read = 1\n    x = read\nA.read\nA().read = 2\n", "class A:\n    aread = 1\n    x = aread\nA.aread\nA().aread = 2\n"),
        ("class A:\n    __slots__ = ('read',)\n    def __init__(self, read):\n        self.read = read\nA(1).read\n", "class A:\n    __slots__ = ('aread',)\n    def __init__(self, read):\n        self.aread = read\nA(1).aread\n"),
        ("from dataclasses import dataclass\n@dataclass\nclass A:\n    read: int\nA(read=1).read\n", "from dataclasses import dataclass\n@dataclass\nclass A:\n    aread: int\nA(aread=1).aread\n"),
        ("class A:\n    @property\n    def read(self): ...\n    @read.setter\n    def read(self, v): ...\nA().read = 1\n", "class A:\n    @property\n    def aread(self): ...\n    @aread.setter\n    def aread(self, v): ...\nA().aread = 1\n"),
        ("class A:\n    @classmethod\n    def read(cls): return cls.read()\n    @staticmethod\n    def s(): return A.read()\n", "class A:\n    @classmethod\n    def aread(cls): return cls.aread()\n    @staticmethod\n    def s(): return A.aread()\n"),
        ("import enum\nclass A(enum.Enum):\n    read = 1\nA.read\n", "import enum\nclass A(enum.Enum):\n    aread = 1\nA.aread\n"),
        ("class A:\n    class read:\n        pass\n    def m(self): return self.read()\n", "class A:\n    class aread:\n        pass\n    def m(self): return self.aread()\n"),
        ("class A:\n    def read(self, read=None): return read\nA().read(read=1)\n", "class A:\n    def aread(self, read=None): return read\nA().aread(read=1)\n"),
    ],
)  # fmt: skip
def test_every_kind_of_member_can_be_renamed(before: str, after: str) -> None:
    assert renamed({"a.py": before}) == {"a.py": after}


def test_members_of_nested_classes_are_found() -> None:
    text = "class A:\n    class B:\n        def read(self): ...\nA.B().read()\n"

    assert renamed({"a.py": text}, "a.A.B.read") == {"a.py": text.replace("read", "aread")}


def test_a_stub_of_the_class_goes_along() -> None:
    files: dict[str, str | bytes] = {
        "a.py": "class A:\n    def read(self): ...\n",
        "a.pyi": "class A:\n    def read(self) -> int: ...\n",
        "use.py": "from a import A\nA().read()\n",
    }

    assert renamed(files) == {path: str(text).replace("read", "aread") for path, text in files.items()}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("class A(dict):\n    def keys(self): ...\n", "a.py: keys overrides that of dict, which is not in this repository."),
        ("import threading\nclass B(threading.Thread): ...\nclass A(B):\n    def keys(self): ...\n    def run(self): ...\n", ""),
    ],
)  # fmt: skip
def test_what_overrides_something_outside_is_refused(text: str, told: str) -> None:
    symbol = "a.A.keys"
    if not told:
        assert "aread" in renamed({"a.py": text}, symbol)["a.py"]
        symbol, told = "a.A.run", "a.py: run overrides that of Thread, which is not in this repository."

    with pytest.raises(ContractError) as caught:
        renamed({"a.py": text}, symbol)

    assert told in str(caught.value)


def test_a_base_that_is_not_there_is_a_risk() -> None:
    text = "from elsewhere import Base\nclass A(Base):\n    def read(self): ...\n"

    result = run(RENAME, {"symbol": "a.A.read", "to": "aread"}, {"a.py": text})

    assert [risk.text for risk in result.risks] == [
        "The base Base is not in this repository: if it has read, nothing overrides that any more."
    ]


def test_in_a_large_repository_no_types_are_guessed_and_that_is_told() -> None:
    files: dict[str, str | bytes] = {
        "a.py": "class A:\n    def read(self): ...\ndef f(x): x.read()\nf(A())\n",
        "large.py": "# filler\n" * 1_000_000,
    }

    result = run(RENAME, {"symbol": "a.A.read", "to": "aread"}, files)

    assert [one.reason.partition(";")[0] for one in result.residue] == [
        "the type of what stands before the dot is not written, and there was no more room to guess it"
    ]

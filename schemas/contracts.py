"""Contracts: what an action kind accepts and returns, as data; and the registry that holds them by name@version.

Built-in names are reserved, and one name@version has one schema digest: a role that announces another document
under a known name is refused.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any, Literal

from pydantic import Field, ValidationError

from schemas.base import Strict
from schemas.errors import ContractError
from schemas.suggest import nearest
from schemas.words import Risk, Shardable


class TimeLimit(Strict):
    """Seconds of wall time an attempt may take."""

    default: float = Field(gt=0)
    longest: float = Field(gt=0)


class Requirements(Strict):
    """What the machine must have."""

    tools: tuple[str, ...] = ()
    network: bool = False


class Example(Strict):
    """A file before and after a rule of this contract with this input."""

    input: dict[str, Any]
    before: str
    after: str
    path: str = "example.py"


class ContractDocument(Strict):
    """One contract, as its JSON document states it.

    `changes` says whether the result is a commit (`tree`) or a report (`nothing`). `pure` means: same input, base
    and engine version, same result, so it may run twice and anywhere. `injected` lists input fields that the
    supervisor fills and no author writes.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$")
    version: int = Field(ge=1)
    title: str
    description: str
    pool: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    changes: Literal["tree", "nothing"]
    risk: Risk = Risk.LOW
    time_limit_s: TimeLimit
    side_effects: str
    must_not: tuple[str, ...] = ()
    requires: Requirements = Field(default_factory=Requirements)
    pure: bool = True
    shardable: Shardable
    author_may_shard: bool = False
    injected: tuple[str, ...] = ()
    postcondition: str | None = None
    input: dict[str, Any]
    output: dict[str, Any]
    examples: tuple[Example, ...] = ()

    @property
    def ref(self) -> str:
        """`name@version`, as actions and plans cite it."""
        return f"{self.name}@{self.version}"

    @property
    def digest(self) -> str:
        """SHA-256 over the document in canonical JSON."""
        return sha256(canonical_json(self.model_dump(mode="json")).encode()).hexdigest()


class ContractRegistry:
    """The contracts known here: the built-in ones, and those that live roles announced."""

    def __init__(self, documents: Iterable[ContractDocument] = ()) -> None:
        self._by_ref: dict[str, ContractDocument] = {}
        self._builtin: frozenset[str] = frozenset()
        for document in documents:
            self.add(document)

    @classmethod
    def builtin(cls) -> "ContractRegistry":
        """A registry with the contracts that are shipped; their names are reserved in it."""
        registry = cls(builtin_contracts())
        registry._builtin = frozenset(document.name for document in builtin_contracts())
        return registry

    def add(self, document: ContractDocument) -> None:
        """Take a contract in. Raises ContractError if its name is reserved or its digest differs from the known one."""
        known = self._by_ref.get(document.ref)
        if known is not None:
            if known.digest == document.digest:
                return
            raise ContractError(
                f"{document.ref} is already known with another schema.",
                suggestion="Give the changed contract a new version number.",
            )
        if document.name in self._builtin:
            raise ContractError(
                f"{document.name} is a built-in name.",
                suggestion="Choose a name of your own, for instance with your team's prefix.",
            )
        self._by_ref[document.ref] = document

    def get(self, ref: str) -> ContractDocument:
        """The contract cited as `name@version`, or the newest of `name`. Raises ContractError with the nearest name."""
        found = self._by_ref.get(ref) or self._newest(ref)
        if found is None:
            hint = nearest(ref, [*self.names(), *self._by_ref])
            raise ContractError(
                f"There is no contract {ref!r}; known are {', '.join(self.names())}.",
                suggestion=f"Did you mean {hint!r}?" if hint else "`rolecall contracts` shows them.",
            )
        return found

    def is_builtin(self, name: str) -> bool:
        """True if the name is one of ours, reserved here."""
        return name in self._builtin

    def names(self) -> tuple[str, ...]:
        """All names, sorted, each once."""
        return tuple(sorted({document.name for document in self}))

    def __contains__(self, ref: str) -> bool:
        return ref in self._by_ref or self._newest(ref) is not None

    def __iter__(self) -> Iterator[ContractDocument]:
        return iter(tuple(self._by_ref.values()))

    def _newest(self, name: str) -> ContractDocument | None:
        versions = [document for document in self._by_ref.values() if document.name == name]
        return max(versions, key=lambda document: document.version, default=None)


@cache
def builtin_contracts() -> tuple[ContractDocument, ...]:
    """The contracts shipped in schemas/json/actions, sorted by name."""
    folder = resources.files("schemas") / "json" / "actions"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".json")), key=lambda f: f.name)
    return tuple(parse_contract(json.loads(f.read_text("utf-8")), origin=f.name) for f in files)


def parse_contract(document: dict[str, Any], origin: str) -> ContractDocument:
    """Check a contract document. Raises ContractError that names `origin` and the first fault."""
    try:
        return ContractDocument.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "document"
        raise ContractError(f"{origin}: {where}: {first['msg']}.") from error


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text, for digests."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

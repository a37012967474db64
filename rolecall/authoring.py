"""For authors of roles: a contract as a dict or a JSON file, and a class with one method that turns files into files.

    class Shout(Role):
        contract = Contract({"name": "text.shout", "input": {"type": "object"}})

        def handle(self, input, files):
            result = Result()
            for path, data in files.items("**/*.txt"):
                result.change(path, data.upper())
            return result

`rolecall role module:Shout` serves it; a recipe's rule names it: `- text.shout: {}`. Rules for a handler: the same
files and input give the same result (say `"pure": false` in the contract if that cannot be), and it touches only what
it was given. An `async def` handler runs in the role's own event loop and must only wait, never compute.
"""

import json
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schemas.contracts import ContractDocument, parse_contract
from schemas.errors import ContractError
from schemas.handoff import Residue, RiskNote
from schemas.scope import Scope
from schemas.words import Severity
from workspace.entries import FILE_MODE, NewFile
from workspace.view import TreeView

_DEFAULTS: Mapping[str, Any] = {
    "version": 1,
    "changes": "tree",
    "risk": "low",
    "shardable": "file",
    "pure": True,
    "time_limit_s": {"default": 120, "longest": 900},
    "side_effects": "None outside the result commit.",
    "output": {"type": "object"},
}


class Contract:
    """What the role accepts; only `name` and `input` (a JSON Schema) are needed, the rest has defaults.

    Raises ContractError that names the fault.
    """

    def __init__(self, document: Mapping[str, Any], *, origin: str = "the contract") -> None:
        name = str(document.get("name", ""))
        implied = {
            "title": name,
            "description": str(document.get("title", name)),
            "pool": name.replace(".", "-").replace("_", "-"),
        }
        self.document: ContractDocument = parse_contract({**_DEFAULTS, **implied, **document}, origin=origin)
        if self.document.changes != "tree":
            raise ContractError(
                f"{origin}: a rule's contract changes the tree.",
                suggestion='Leave `changes` out, or say "tree".',
            )

    @classmethod
    def load(cls, path: str | Path, *, beside: str | None = None) -> "Contract":
        """The contract in a JSON file; `beside=__file__` looks in the folder of the author's module."""
        file = Path(beside).parent / path if beside else Path(path)
        try:
            return cls(json.loads(file.read_bytes()), origin=str(file))
        except (OSError, ValueError) as error:
            raise ContractError(f"{file} is no contract: {error}.") from error


@dataclass(frozen=True, slots=True)
class Files:
    """The files that the action may see, as bytes: nothing is decoded, and line ends are as they are."""

    view: TreeView = field(repr=False)

    def paths(self, *globs: str) -> tuple[str, ...]:
        """The paths that one of the globs matches (all without any), in byte order."""
        scope = Scope(include=globs or ("**",))
        return tuple(path for path in self.view.paths() if scope.admits(path))

    def items(self, *globs: str) -> Iterator[tuple[str, bytes]]:
        """(path, bytes) of each such file; much quicker than `read` one by one."""
        return self.view.read_many(self.paths(*globs))

    def read(self, path: str) -> bytes:
        """The bytes of one file. Raises KeyError."""
        return self.view.read(path)


@dataclass(slots=True)
class Result:
    """What the handler wants done, and its account of it. `output` is the contract's output."""

    output: dict[str, Any] = field(default_factory=dict)
    sites: int = 0
    _files: dict[str, bytes | None] = field(default_factory=dict)
    _residue: list[Residue] = field(default_factory=list)
    _risks: list[RiskNote] = field(default_factory=list)

    def change(self, path: str, data: bytes, *, sites: int = 1) -> None:
        """Give a file these bytes; a new one is added. Its mode stays. Unchanged bytes are no change."""
        self._files[path] = data
        self.sites += sites

    def delete(self, path: str) -> None:
        """Delete a file; the task must allow deletions."""
        self._files[path] = None
        self.sites += 1

    def leave(self, path: str, reason: str, *, line: int = 0, text: str = "") -> None:
        """Name a place that looks like one to change and was left, with the reason."""
        self._residue.append(Residue(path=path, line=line, text=text, reason=reason))

    def warn(self, text: str, *, path: str | None = None) -> None:
        """Tell what a reader should know before trusting the result."""
        self._risks.append(RiskNote(severity=Severity.WARNING, text=text, path=path))

    @property
    def residue(self) -> tuple[Residue, ...]:
        """The places that were left."""
        return tuple(self._residue)

    @property
    def risks(self) -> tuple[RiskNote, ...]:
        """What was warned of."""
        return tuple(self._risks)

    def changes(self, view: TreeView) -> dict[str, NewFile | None]:
        """The files as a commit takes them."""
        found: dict[str, NewFile | None] = {}
        for path, data in self._files.items():
            entry = view.entry(path)
            found[path] = None if data is None else NewFile(entry.mode if entry else FILE_MODE, data)
        return found


class Role:
    """The base of a role: set `contract`, write `handle`. A change of what `handle` does is a new `version`."""

    contract: Contract
    version: str = "1"

    def handle(self, input: dict[str, Any], files: Files) -> Result | Awaitable[Result]:
        """Do the work of one action: `input` fits the contract. Raise any exception to fail the attempt."""
        raise NotImplementedError(f"{type(self).__name__} has no `handle`.")

"""What an engine is: a rule of one contract, applied to a view of files.

An engine is a pure function of (input, files, engine version). It is never silent: what it could not read, parse or
decide is residue (a place that was left) or a risk (something to know about what was changed).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from schemas.handoff import Provenance, Residue, RiskNote
from workspace.entries import NewFile
from workspace.view import TreeView

# Residue quotes the place; more than this of a line helps nobody and swells handoffs.
MAX_QUOTE = 200


@dataclass(frozen=True, slots=True)
class FileResult:
    """What came of one file; `data` is None if its bytes stay."""

    data: bytes | None = None
    sites: int = 0
    residue: tuple[Residue, ...] = ()
    risks: tuple[RiskNote, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineResult:
    """What came of all files: the new files by path (None deletes), and the account of it.

    `files_seen` counts the files that were looked at; `extras` are further fields of the contract's output.
    """

    changes: Mapping[str, NewFile | None] = field(default_factory=dict)
    sites: int = 0
    files_seen: int = 0
    residue: tuple[Residue, ...] = ()
    risks: tuple[RiskNote, ...] = ()
    provenance: tuple[Provenance, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)

    def output(self) -> dict[str, Any]:
        """The contract's output."""
        return {"sites": self.sites, "files_seen": self.files_seen, **self.extras}


class Engine(Protocol):
    """One engine. `name` and `version` go into commit digests: a change of behaviour is a new version."""

    contract: str
    name: str
    version: str

    def check(self, input: Mapping[str, Any]) -> None:
        """Raises ContractError if the rule itself is wrong, whatever the files."""

    def wants(self, input: Mapping[str, Any], path: str) -> bool:
        """True if a file of this path could be changed by the rule; cheap, decided by the path alone."""

    def literals(self, input: Mapping[str, Any]) -> tuple[bytes, ...] | None:
        """A file that lacks one of these has no site; None if nothing can be said."""

    def apply(self, input: Mapping[str, Any], view: TreeView) -> EngineResult:
        """Apply the rule to every file of the view that it wants."""


def apply_each(
    engine: Engine, files: Iterable[str], view: TreeView, transform: Callable[[str, bytes], FileResult]
) -> EngineResult:
    """Apply `transform` to each file on its own; modes stay. The account is in byte order of paths."""
    changes: dict[str, NewFile | None] = {}
    residue: list[Residue] = []
    risks: list[RiskNote] = []
    provenance: list[Provenance] = []
    sites = seen = 0
    for path, data in view.read_many(files):
        seen += 1
        result = transform(path, data)
        residue += result.residue
        risks += result.risks
        if result.data is None or result.data == data:
            continue
        entry = view.entry(path)
        assert entry is not None, path  # the view itself named this path
        sites += result.sites
        changes[path] = NewFile(entry.mode, result.data)
        provenance.append(Provenance(path=path, hunk=result.sites, engine=f"{engine.name} {engine.version}"))
    return EngineResult(changes, sites, seen, tuple(residue), tuple(risks), tuple(provenance))


def quote(text: str) -> str:
    """A place in a file as residue shows it: its first line, not too long, and printable in any message."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    line = line.encode("utf-8", "replace").decode("utf-8")  # lone surrogates stand for undecodable bytes
    return line if len(line) <= MAX_QUOTE else line[: MAX_QUOTE - 3] + "..."

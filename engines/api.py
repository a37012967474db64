"""What an engine is: a rule of one contract, applied to a view of files.

An engine is a pure function of (input, files, engine version). It is never silent: what it could not read, parse or
decide is residue (a place that was left) or a risk (something to know about what was changed).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from schemas.handoff import Provenance, Residue, RiskNote
from workspace.entries import NewFile
from workspace.view import TreeView

# Residue quotes the place; more than this of a line helps nobody and swells handoffs.
MAX_QUOTE = 200


@dataclass(frozen=True, slots=True)
class FileResult:
    """What came of one file; `data` is None if its bytes stay. `counts` are further counts, by the engine's names."""

    data: bytes | None = None
    sites: int = 0
    residue: tuple[Residue, ...] = ()
    risks: tuple[RiskNote, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


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


@runtime_checkable
class FileEngine(Engine, Protocol):
    """An engine whose result for a file follows from the file, whatever the others hold."""

    def selects(self, input: Mapping[str, Any], view: TreeView) -> Sequence[str]:
        """The files that the rule looks at, in the order of the view."""

    def remembered_as(self, input: Mapping[str, Any], view: TreeView) -> str | None:
        """Canonical text of all that a file's result follows from besides its path and bytes and the engine's version;
        None where that cannot be said, and nothing is remembered."""

    def each(
        self, input: Mapping[str, Any], view: TreeView, paths: Sequence[str]
    ) -> Iterator[tuple[str, FileResult]]:
        """What comes of each of these files."""

    def account(
        self, input: Mapping[str, Any], made: EngineResult, counts: Mapping[str, int]
    ) -> EngineResult:
        """The whole result, with what can only be said of all files together."""


def transform_each(
    view: TreeView, paths: Sequence[str], transform: Callable[[str, bytes], FileResult]
) -> Iterator[tuple[str, FileResult]]:
    """`transform` for each file on its own."""
    return ((path, transform(path, data)) for path, data in view.read_many(paths))


def apply_files(engine: FileEngine, input: Mapping[str, Any], view: TreeView) -> EngineResult:
    """Every file that the rule looks at, and the account of all; a file engine's `apply`."""
    paths = engine.selects(input, view)
    results = dict(engine.each(input, view, paths))
    return gather(engine, input, view, ((path, results[path]) for path in paths))


def gather(
    engine: FileEngine, input: Mapping[str, Any], view: TreeView, results: Iterable[tuple[str, FileResult]]
) -> EngineResult:
    """The account of files that each have their result, in the order given; modes stay."""
    changes: dict[str, NewFile | None] = {}
    residue: list[Residue] = []
    risks: list[RiskNote] = []
    provenance: list[Provenance] = []
    counts: Counter[str] = Counter()
    sites = seen = 0
    for path, result in results:
        seen += 1
        residue += result.residue
        risks += result.risks
        if result.data is None:
            continue
        entry = view.entry(path)
        assert entry is not None, path  # the view itself named this path
        sites += result.sites
        counts.update(result.counts)
        changes[path] = NewFile(entry.mode, result.data)
        provenance.append(Provenance(path=path, hunk=result.sites, engine=f"{engine.name} {engine.version}"))
    made = EngineResult(changes, sites, seen, tuple(residue), tuple(risks), tuple(provenance))
    return engine.account(input, made, counts)


def quote(text: str) -> str:
    """A place in a file as residue shows it: its first line, not too long, and printable in any message."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    line = line.encode("utf-8", "replace").decode("utf-8")  # lone surrogates stand for undecodable bytes
    return line if len(line) <= MAX_QUOTE else line[: MAX_QUOTE - 3] + "..."

"""The hub: a bare git repository that carries snapshots between processes.

Nothing in it is ever collected by itself, refs move by compare-and-swap, and every commit that we make has an id
that follows from its content alone: fixed author, dates of the base commit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from schemas.handoff import FileChange
from schemas.words import ChangeKind
from workspace.entries import Entry, NewFile


@dataclass(frozen=True, slots=True)
class PathChange:
    """One path between two commits, with what stood and what stands there; `added` and `removed` count lines."""

    path: str
    change: ChangeKind
    old_mode: str | None
    new_mode: str | None
    old_oid: str | None
    new_oid: str | None
    added: int = 0
    removed: int = 0

    def as_file_change(self) -> FileChange:
        """The part of it that travels in a handoff."""
        return FileChange(path=self.path, change=self.change, added=self.added, removed=self.removed)


@dataclass(frozen=True, slots=True)
class Composed:
    """Results spliced onto a head: the new commit (the head itself if nothing changes) and the paths that changed."""

    commit: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Results that cannot be spliced: the paths, and the result commits that have to be made again."""

    paths: tuple[str, ...]
    results: tuple[str, ...]


class Hub:
    """One hub, by path (used directly) or by git URL (through a local bare cache)."""

    location: str
    object_format: Literal["sha1", "sha256"]

    @classmethod
    def create(cls, path: Path, *, object_format: Literal["sha1", "sha256"] = "sha1") -> "Hub":
        """The hub at the path, made if it is not there."""
        raise NotImplementedError

    @classmethod
    def open(cls, location: str | Path, *, cache_dir: Path | None = None) -> "Hub":
        """An existing hub. Raises SettingsError if there is none. A URL needs a `cache_dir`."""
        raise NotImplementedError

    def close(self) -> None:
        """End the helper processes; also by `with`."""
        raise NotImplementedError

    def ensure(self, commit: str) -> None:
        """Have the commit (or blob) here, fetching it if this is a cache. Raises WorkspaceError if it is nowhere."""
        raise NotImplementedError

    def head_tree(self, commit: str) -> str:
        """The id of the commit's tree: two commits with one tree hold the same files."""
        raise NotImplementedError

    def list_tree(self, commit: str) -> dict[str, Entry]:
        """Every leaf of the commit's tree by path."""
        raise NotImplementedError

    def read(self, oid: str) -> bytes:
        """The bytes of a blob."""
        raise NotImplementedError

    def read_many(self, oids: Iterable[str]) -> Iterator[bytes]:
        """The bytes of many blobs, in the order asked."""
        raise NotImplementedError

    def write_blob(self, data: bytes, *, ref: str | None = None) -> str:
        """Store bytes as a blob; with a ref it is kept alive (and reaches the hub if this is a cache)."""
        raise NotImplementedError

    def changes(self, base: str, result: str) -> tuple[PathChange, ...]:
        """What differs between two commits, in byte order of paths; a rename is a deletion and an addition."""
        raise NotImplementedError

    def commit(self, base: str, changes: Mapping[str, NewFile | None], *, message: str) -> str:
        """A commit on `base` with these files put in place (None deletes); `base` itself if nothing differs."""
        raise NotImplementedError

    def compose(self, head: str, results: Sequence[tuple[str, str]], *, message: str) -> Composed | Conflict:
        """Splice (base, result) pairs onto the head by tree; never a textual merge; any order, one outcome."""
        raise NotImplementedError

    def publish(self, ref: str, oid: str) -> None:
        """Point a ref at a commit or blob in the hub itself, whatever it pointed at before (results, blobs)."""
        raise NotImplementedError

    def set_ref(self, ref: str, new: str | None, old: str | None) -> bool:
        """Move a ref from `old` to `new` in one step; None means absent. False if it does not stand at `old`."""
        raise NotImplementedError

    def refs(self, prefix: str) -> dict[str, str]:
        """The hub's refs below a prefix, by name."""
        raise NotImplementedError

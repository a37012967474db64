"""The hub: a bare git repository that carries snapshots between processes.

Nothing in it is ever collected by itself, refs move by compare-and-swap, and every commit that we make has an id
that follows from its content alone: fixed author, dates of the base commit. By path it is used directly; by URL it
is reached through a local bare cache, with commits fetched when they are needed and refs pushed when they are set.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock

from schemas.errors import ContractError, SettingsError, WorkspaceError
from schemas.handoff import FileChange
from schemas.words import ChangeKind
from workspace.entries import (
    EXECUTABLE_MODE,
    FILE_MODE,
    LINK_MODE,
    SUBMODULE_MODE,
    Entry,
    NewFile,
    blob_id,
    to_bytes,
    to_text,
)
from workspace.git import GitError, git
from workspace.hub_store import ObjectFormat, create_repository, is_url, object_format_of
from workspace.line_counts import line_counts
from workspace.listing import list_entries, make_entry
from workspace.objects import MissingObjectError, ObjectReader
from workspace.path_rules import danger
from workspace.remote import Remote
from workspace.splice import splice
from workspace.tree_walk import Leaf, canonical_mode, clashes, differences, leaf_at
from workspace.writing import write_commit

# Snapshots whose list of files is kept: the base, the head and a few results.
_LISTS_KEPT = 8
_MODES = frozenset({FILE_MODE, EXECUTABLE_MODE, LINK_MODE})


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
    """One hub; a context manager. Several processes may use one hub at once, and several threads one object."""

    def __init__(
        self, location: str, repository: Path, object_format: ObjectFormat, remote: Remote | None
    ) -> None:
        self.location = location
        self.repository = repository
        self.object_format = object_format
        self._remote = remote
        self.objects = ObjectReader(repository)
        self._lists: dict[str, dict[str, Entry]] = {}
        self._lists_lock = Lock()

    @classmethod
    def create(cls, path: Path, *, object_format: ObjectFormat = "sha1") -> "Hub":
        """The hub at the path, made if it is not there (then with this object format)."""
        create_repository(path, object_format)
        return cls.open(path)

    @classmethod
    def open(cls, location: str | Path, *, cache_dir: Path | None = None) -> "Hub":
        """An existing hub. Raises SettingsError if there is none. A URL needs a folder for its cache."""
        if not is_url(location):
            path = Path(location).absolute()
            return cls(str(path), path, object_format_of(path), None)
        if cache_dir is None:
            raise SettingsError(f"The hub at {location} needs a folder for its cache.")
        url = str(location)
        name = sha256(url.encode()).hexdigest()[:16]
        probe = create_repository(cache_dir / f"{name}.git", "sha1")
        object_format = Remote(url, probe).object_format()
        cache = (
            probe
            if object_format == "sha1"
            else create_repository(cache_dir / f"{name}-sha256.git", "sha256")
        )
        return cls(url, cache, object_format, Remote(url, cache))

    def __enter__(self) -> "Hub":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the helper processes; a later use starts them again."""
        self.objects.close()

    @property
    def is_remote(self) -> bool:
        """True if `location` is a URL and `repository` only its cache."""
        return self._remote is not None

    # ---- reading -------------------------------------------------------------------------------------------------

    def has(self, oid: str) -> bool:
        """True if the object is here (in a cache: already fetched)."""
        return self.objects.kind(oid) is not None

    def ensure(self, commit: str) -> None:
        """Have the commit (or blob) here, fetching it if this is a cache. Raises WorkspaceError if it is nowhere."""
        if self.has(commit):
            return
        if self._remote is None:
            raise MissingObjectError(commit)
        self._remote.fetch(commit, lambda: self.has(commit))

    def head_tree(self, commit: str) -> str:
        """The id of the commit's tree: two commits with one tree hold the same files."""
        self.ensure(commit)
        return self.objects.commit(commit).tree

    def list_tree(self, commit: str) -> dict[str, Entry]:
        """Every leaf of the commit's tree by path, in byte order."""
        tree = self.head_tree(commit)
        with self._lists_lock:
            if tree not in self._lists:
                self._lists[tree] = self._list(tree)
                while len(self._lists) > _LISTS_KEPT:
                    del self._lists[next(iter(self._lists))]
            return dict(self._lists[tree])

    def read(self, oid: str) -> bytes:
        """The bytes of a blob."""
        return next(self.read_many([oid]))

    def read_many(self, oids: Iterable[str]) -> Iterator[bytes]:
        """The bytes of many blobs, in the order asked."""
        wanted = list(oids)
        if self._remote is not None and len(wanted) == 1:
            self.ensure(wanted[0])
        for oid, (kind, content) in zip(wanted, self.objects.read_many(wanted), strict=True):
            if kind != "blob":
                raise WorkspaceError(f"{oid} is a {kind}, not a file.")
            yield content

    def size(self, oid: str) -> int:
        """The size of a blob in bytes, without reading it."""
        self.ensure(oid)
        return self.objects.sizes([oid])[oid]

    def changes(self, base: str, result: str, *, count_lines: bool = True) -> tuple[PathChange, ...]:
        """What differs between two commits, in byte order of paths; a rename is a deletion and an addition.

        Counting lines costs a git process; without it `added` and `removed` are 0.
        """
        old_tree, new_tree = self.head_tree(base), self.head_tree(result)
        differing = {
            path: (old, new)
            for path, (old, new) in differences(self.objects, old_tree, new_tree).items()
            if _canonical(old) != _canonical(new)
        }
        counts = line_counts(self.repository, old_tree, new_tree) if count_lines and differing else {}
        return tuple(
            _path_change(path, _canonical(old), _canonical(new), counts.get(path, (0, 0)))
            for path, (old, new) in differing.items()
        )

    # ---- writing -------------------------------------------------------------------------------------------------

    def write_blob(self, data: bytes, *, ref: str | None = None) -> str:
        """Store bytes as a blob; with a ref it is kept alive (and reaches the hub if this is a cache)."""
        oid = (
            git(self.repository, "hash-object", "-w", "--no-filters", "--stdin", stdin=data).decode().strip()
        )
        if ref is not None:
            self.publish(ref, oid)
        return oid

    def commit(self, base: str, changes: Mapping[str, NewFile | None], *, message: str) -> str:
        """A commit on `base` with these files put in place (None deletes); `base` itself if nothing differs.

        Raises ContractError for a path that no commit may hold, or that cannot stand beside the others.
        """
        self.ensure(base)
        parent = self.objects.commit(base)
        wanted = {to_bytes(path): new for path, new in changes.items()}
        for path, new in wanted.items():
            reason = danger(path) if new is not None else None
            if reason is not None:
                raise ContractError(f"The path {to_text(path)!r} {reason}; no result may hold it.")
            if new is not None and canonical_mode(new.mode) not in _MODES:
                raise ContractError(f"{to_text(path)!r} cannot have the mode {new.mode!r}.")
        effective = {path: new for path, new in wanted.items() if self._differs(parent.tree, path, new)}
        if not effective:
            return base
        bad = clashes(self.objects, parent.tree, effective)
        if bad:
            raise ContractError(f"{to_text(min(bad))!r} would be a file and a folder at once.")
        return write_commit(self.repository, base, parent, effective, message=message)

    def compose(self, head: str, results: Sequence[tuple[str, str]], *, message: str) -> Composed | Conflict:
        """Splice (base, result) pairs onto the head by tree; never a textual merge; any order, one outcome."""
        for commit in {head, *(one for pair in results for one in pair)}:
            self.ensure(commit)
        spliced = splice(self.objects, head, results)
        if spliced.conflicts:
            fighters = {result for results_at in spliced.conflicts.values() for result in results_at}
            return Conflict(tuple(map(to_text, spliced.conflicts)), tuple(sorted(fighters)))
        if not spliced.changes:
            return Composed(head, ())
        parent = self.objects.commit(head)
        commit = write_commit(self.repository, head, parent, spliced.changes, message=message)
        return Composed(commit, tuple(map(to_text, spliced.changes)))

    # ---- refs ----------------------------------------------------------------------------------------------------

    def publish(self, ref: str, oid: str) -> None:
        """Point a ref at a commit or blob in the hub itself, whatever it pointed at before (results, blobs)."""
        if self._remote is not None:
            self._remote.push(ref, oid)
        else:
            git(self.repository, "update-ref", "--no-deref", ref, oid)

    def set_ref(self, ref: str, new: str | None, old: str | None) -> bool:
        """Move a ref from `old` to `new` in one step; None means absent. False if it does not stand at `old`."""
        if self._remote is not None:
            return self._remote.push_if(ref, new, old)
        if new is None and old is None:
            return ref not in self.refs(ref)
        nothing = "0" * (64 if self.object_format == "sha256" else 40)
        move = ("-d", ref, old or nothing) if new is None else (ref, new, old or nothing)
        try:
            git(self.repository, "update-ref", "--no-deref", *move)
        except GitError:
            if self.refs(ref).get(ref) == old:
                raise
            return False
        return True

    def refs(self, prefix: str) -> dict[str, str]:
        """The hub's refs whose name begins so."""
        if self._remote is not None:
            return self._remote.refs(prefix)
        folder = prefix[: prefix.rfind("/") + 1]
        listed = git(
            self.repository,
            "for-each-ref",
            "--format=%(objectname) %(refname)",
            *([folder] if folder else []),
        )
        pairs = (line.split(" ", 1) for line in listed.decode("utf-8", "surrogateescape").splitlines())
        return {name: oid for oid, name in pairs if name.startswith(prefix)}

    # ---- helpers -------------------------------------------------------------------------------------------------

    def _list(self, tree: str) -> dict[str, Entry]:
        """The files of a tree: what differs from a tree that we know, or all of them."""
        known = next((other for other in reversed(self._lists) if self._are_alike(other, tree)), None)
        if known is None:
            return list_entries(self.repository, tree)
        differing = differences(self.objects, known, tree)
        leaves = {to_text(path): new for path, (_, new) in differing.items()}
        sizes = self.objects.sizes(new.oid for new in leaves.values() if new and new.mode != SUBMODULE_MODE)
        entries = {path: entry for path, entry in self._lists[known].items() if path not in leaves}
        entries |= {
            p: make_entry(new.mode, new.oid, sizes.get(new.oid, 0)) for p, new in leaves.items() if new
        }
        return dict(sorted(entries.items(), key=lambda item: to_bytes(item[0])))

    def _are_alike(self, one: str, other: str) -> bool:
        """True for two states of one repository, by the names at their top."""
        names, others = set(self.objects.tree(one)), set(self.objects.tree(other))
        return 2 * len(names & others) >= len(names | others)

    def _differs(self, tree: str, path: bytes, new: NewFile | None) -> bool:
        stands = _canonical(leaf_at(self.objects, tree, path))
        if new is None or stands is None:
            return (new is None) != (stands is None)
        return stands != Leaf(canonical_mode(new.mode), blob_id(new.data, self.object_format))


def _path_change(path: bytes, old: Leaf | None, new: Leaf | None, lines: tuple[int, int]) -> PathChange:
    match old, new:
        case None, _:
            kind = ChangeKind.ADDED
        case _, None:
            kind = ChangeKind.DELETED
        case Leaf(oid=before), Leaf(oid=after) if before == after:
            kind = ChangeKind.MODE
        case _:
            kind = ChangeKind.MODIFIED
    return PathChange(
        path=to_text(path),
        change=kind,
        old_mode=old.mode if old else None,
        new_mode=new.mode if new else None,
        old_oid=old.oid if old else None,
        new_oid=new.oid if new else None,
        added=lines[0],
        removed=lines[1],
    )


def _canonical(leaf: Leaf | None) -> Leaf | None:
    return leaf and Leaf(canonical_mode(leaf.mode), leaf.oid)

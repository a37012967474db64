"""Disposable trees: the plain files of one commit, without `.git`, for code that nobody trusts.

No git process ever runs over them. A tree that foreign code has worked in can be made into the tree of another
commit: what was touched is known by inode, size and change time (which only the kernel sets), and is written anew.
So a candidate of a few files costs a few files, and still starts from exactly its commit.
"""

import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import WorkspaceError
from workspace.entries import (
    EXECUTABLE_MODE,
    FILE_MODE,
    LINK_MODE,
    Entry,
    NewFile,
    blob_id,
    to_bytes,
    to_text,
)
from workspace.hub import Hub
from workspace.path_rules import danger
from workspace.tree_walk import parents
from workspace.walking import Found, remove_tree, walk

# The kernel stamps changes by a clock that ticks every 1 to 10 ms: what was written this shortly before the end of
# writing could be changed within the same tick, and is compared by content.
_TICKS_NS = 50_000_000
# A changed file over this is left out of a result: no refactor writes it, and it would go through memory.
LARGEST_FILE_BYTES = 64 * 1024 * 1024
# Trees that one process keeps for the next action: one for head and one for candidate.
_KEPT = 2

_Stamp = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Collected:
    """What foreign code changed: files as they are now (None: deleted), and what may not be taken, with the reason."""

    changes: dict[str, NewFile | None]
    left_out: dict[str, str]


class DisposableTree:
    """A folder that holds the files of one commit; a context manager that deletes it.

    File modes and symbolic links are as in the commit, a submodule is an empty folder, large-file pointers stay
    pointers.
    """

    def __init__(self, hub: Hub, commit: str, folder: Path) -> None:
        self.path = folder
        self.commit = commit
        self._hub = hub
        self._entries: Mapping[str, Entry] = {}
        self._stamps: dict[bytes, _Stamp] = {}
        # Files stamped after this are compared by content.
        self._settled_ns = 0
        self._folder_mode = 0o755
        remove_tree(folder)
        folder.mkdir(parents=True)
        self._folder_mode = stat.S_IMODE(folder.stat().st_mode)
        self.fill(commit)

    def __enter__(self) -> "DisposableTree":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Delete the folder."""
        remove_tree(self.path)

    def fill(self, commit: str) -> None:
        """Make the folder hold exactly the files of a commit, whatever was done in it before."""
        wanted = self._hub.list_tree(commit)
        _refuse_dangerous(wanted, commit)
        self.path.chmod(self._folder_mode)
        present = self._clear(walk(self.path), wanted)
        self.commit, self._entries = commit, wanted
        self._write({path: entry for path, entry in wanted.items() if to_bytes(path) not in present})
        self._settled_ns = self._clock_ns() - _TICKS_NS

    def collect(self, admits: Callable[[str], bool] = lambda _: True) -> Collected:
        """What differs from the commit by now. Only paths that `admits` are taken; the rest is left out by name."""
        submodules = {to_bytes(path) for path, entry in self._entries.items() if entry.is_submodule}
        found = walk(self.path, enter=lambda folder: folder not in submodules and _is_harmless(folder))
        changes: dict[str, NewFile | None] = {}
        left_out = {to_text(path): "is too deep" for path in found.too_deep}
        left_out |= {to_text(path): str(danger(path)) for path in found.folders if not _is_harmless(path)}
        for raw, status in sorted(found.files.items()):
            if self._is_untouched(raw, status):
                continue
            path = to_text(raw)
            new = self._new_file(raw, status)
            if isinstance(new, str):
                left_out[path] = new
            elif self._differs(path, new):
                changes[path] = new
        for path, entry in self._entries.items():
            if not entry.is_submodule and to_bytes(path) not in found.files:
                changes[path] = None
        for path in [path for path in changes if not admits(path)]:
            del changes[path]
            left_out[path] = "is outside what may be changed"
        return Collected(dict(sorted(changes.items())), dict(sorted(left_out.items())))

    # ---- helpers -------------------------------------------------------------------------------------------------

    def _clear(self, found: Found, wanted: Mapping[str, Entry]) -> set[bytes]:
        """Delete what the commit does not have or what was touched; gives back the paths that are right already."""
        right: set[bytes] = set()
        for raw, status in found.files.items():
            path = to_text(raw)
            is_wanted = path in wanted and self._entries.get(path) == wanted[path]
            if is_wanted and self._is_untouched(raw, status):
                right.add(raw)
            else:
                os.unlink(self._at(raw))
                self._stamps.pop(raw, None)
        kept = _folders_of(wanted)
        emptied = {to_bytes(path) for path, entry in wanted.items() if entry.is_submodule}
        for raw in sorted(found.folders, reverse=True):
            if raw not in kept or raw in emptied:
                remove_tree(Path(os.fsdecode(self._at(raw))))
            elif stat.S_IMODE(found.folders[raw].st_mode) != self._folder_mode:
                os.chmod(self._at(raw), self._folder_mode)
        return right

    def _write(self, missing: Mapping[str, Entry]) -> None:
        for raw in sorted(_folders_of(missing)):
            with suppress(FileExistsError):
                os.mkdir(self._at(raw))
        blobs = [(to_bytes(path), entry) for path, entry in missing.items() if entry.kind == "blob"]
        contents = self._hub.read_many([entry.oid for _, entry in blobs])
        for (raw, entry), content in zip(blobs, contents, strict=True):
            where = self._at(raw)
            if entry.is_link:
                os.symlink(content, where)
                self._stamps[raw] = _stamp(os.lstat(where))
                continue
            mode = 0o777 if entry.is_executable else 0o666
            with open(
                os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb"
            ) as file:
                file.write(content)
                file.flush()
                self._stamps[raw] = _stamp(os.fstat(file.fileno()))

    def _clock_ns(self) -> int:
        """The time as this file system stamps it."""
        with tempfile.TemporaryFile(dir=self.path.parent) as probe:
            return os.fstat(probe.fileno()).st_ctime_ns

    def _is_untouched(self, raw: bytes, status: os.stat_result) -> bool:
        if self._stamps.get(raw) != _stamp(status):
            return False
        if status.st_ctime_ns < self._settled_ns:
            return True
        new = self._new_file(raw, status)
        return isinstance(new, NewFile) and not self._differs(to_text(raw), new)

    def _new_file(self, raw: bytes, status: os.stat_result) -> NewFile | str:
        """The file as it is now, or why it may not be taken."""
        reason = danger(raw)
        if reason is not None:
            return reason
        if stat.S_ISLNK(status.st_mode):
            return NewFile(LINK_MODE, os.readlink(self._at(raw)))
        if not stat.S_ISREG(status.st_mode):
            return "is no regular file"
        if status.st_size > LARGEST_FILE_BYTES:
            return f"is larger than {LARGEST_FILE_BYTES // 2**20} MiB"
        mode = EXECUTABLE_MODE if status.st_mode & 0o100 else FILE_MODE
        try:
            with open(os.open(self._at(raw), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                return NewFile(mode, file.read(LARGEST_FILE_BYTES))
        except PermissionError:
            return "cannot be read"

    def _differs(self, path: str, new: NewFile) -> bool:
        entry = self._entries.get(path)
        return entry is None or (entry.mode, entry.oid) != (
            new.mode,
            blob_id(new.data, self._hub.object_format),
        )

    def _at(self, raw: bytes) -> bytes:
        return os.fsencode(self.path) + b"/" + raw


class TreeKeeper:
    """The trees of one process: each use starts from exactly its commit, at the price of what differs."""

    def __init__(self, hub: Hub, folder: Path) -> None:
        self._hub = hub
        self._folder = folder
        self._idle: list[DisposableTree] = []

    @contextmanager
    def at(self, commit: str) -> Iterator[DisposableTree]:
        """A tree of the commit, for as long as the block runs."""
        tree = self._take(commit)
        try:
            tree.fill(commit)
            yield tree
        finally:
            self._idle.append(tree)
            while len(self._idle) > _KEPT:
                self._idle.pop(0).remove()

    def close(self) -> None:
        """Delete all trees."""
        while self._idle:
            self._idle.pop().remove()

    def _take(self, commit: str) -> DisposableTree:
        if not self._idle:
            self._folder.mkdir(parents=True, exist_ok=True)
            return DisposableTree(self._hub, commit, Path(tempfile.mkdtemp(prefix="tree-", dir=self._folder)))
        same = [tree for tree in self._idle if tree.commit == commit]
        tree = (same or self._idle)[-1]
        self._idle.remove(tree)
        return tree


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_ino, status.st_ctime_ns, status.st_size, status.st_mode


def _folders_of(entries: Mapping[str, Entry]) -> set[bytes]:
    """Every folder that these entries need, a submodule's own included."""
    folders: set[bytes] = set()
    for path, entry in entries.items():
        raw = to_bytes(path)
        for folder in (raw, *parents(raw)) if entry.is_submodule else parents(raw):
            if folder in folders:
                break
            folders.add(folder)
    return folders


def _refuse_dangerous(entries: Mapping[str, Entry], commit: str) -> None:
    for path in entries:
        reason = danger(to_bytes(path))
        if reason is not None:
            raise WorkspaceError(f"Commit {commit[:12]} cannot be written to disk: {path!r} {reason}.")


def _is_harmless(folder: bytes) -> bool:
    return danger(folder) is None

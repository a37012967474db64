"""What an engine sees: the files of one snapshot, bounded by the action's reach, read without any checkout.

`paths()` names regular files only, so that nobody edits the target of a symbolic link by mistake; links and
submodules are found with `all_paths()` and `entry()`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from schemas.scope import Reach, path_key
from workspace.entries import EXECUTABLE_MODE, FILE_MODE, LINK_MODE, SUBMODULE_MODE, Entry, NewFile, blob_id
from workspace.hub import Hub

__all__ = [
    "EXECUTABLE_MODE",
    "FILE_MODE",
    "LINK_MODE",
    "SUBMODULE_MODE",
    "DictView",
    "Entry",
    "HubView",
    "NewFile",
    "TreeView",
]


class TreeView(Protocol):
    """The files of one snapshot."""

    def paths(self) -> Sequence[str]:
        """The regular files inside the reach, in byte order: what an action may look at and change."""

    def all_paths(self) -> Sequence[str]:
        """Every path of the snapshot, in byte order: links, submodules and what is out of reach too."""

    def entry(self, path: str) -> Entry | None:
        """What stands at the path, in or out of reach (an engine may need settings from elsewhere)."""

    def read(self, path: str) -> bytes:
        """The bytes at the path, in or out of reach. Raises KeyError if no blob stands there."""

    def read_many(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """(path, bytes) for each path, in the order asked; much faster than one `read` each."""

    def changed_since(self, commit: str) -> frozenset[str]:
        """The paths at which something else stands (or nothing stood) in an earlier commit."""


class HubView:
    """A commit in the hub."""

    def __init__(self, hub: Hub, commit: str, reach: Reach | None = None) -> None:
        self._hub = hub
        self._entries = hub.list_tree(commit)
        files = (path for path, entry in self._entries.items() if entry.is_file)
        self._paths = (reach or Reach()).select(files)

    def paths(self) -> Sequence[str]:
        return self._paths

    def all_paths(self) -> Sequence[str]:
        return sorted(self._entries, key=path_key)

    def entry(self, path: str) -> Entry | None:
        return self._entries.get(path)

    def read(self, path: str) -> bytes:
        return self._hub.read(self._blob(path))

    def read_many(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        wanted = list(paths)
        blobs = self._hub.read_many([self._blob(path) for path in wanted])
        return zip(wanted, blobs, strict=True)

    def changed_since(self, commit: str) -> frozenset[str]:
        self._hub.ensure(commit)
        before = self._hub.list_tree(commit)
        return frozenset(path for path, entry in self._entries.items() if before.get(path) != entry)

    def _blob(self, path: str) -> str:
        entry = self._entries[path]
        if entry.kind != "blob":
            raise KeyError(path)
        return entry.oid


class DictView:
    """Files given as bytes: for trying a rule on its examples, and for tests of engines."""

    def __init__(
        self,
        files: Mapping[str, bytes],
        *,
        modes: Mapping[str, str] | None = None,
        reach: Reach | None = None,
        earlier: Mapping[str, bytes] | None = None,
    ) -> None:
        """`earlier` are the files of the one earlier commit there is, whatever its name; nothing if not given."""
        self._files = dict(files)
        self._earlier = dict(earlier or {})
        modes = modes or {}
        self._entries = {path: _entry(data, modes.get(path, FILE_MODE)) for path, data in files.items()}
        self._paths = (reach or Reach()).select(p for p, entry in self._entries.items() if entry.is_file)

    def paths(self) -> Sequence[str]:
        return self._paths

    def all_paths(self) -> Sequence[str]:
        return sorted(self._entries, key=path_key)

    def entry(self, path: str) -> Entry | None:
        return self._entries.get(path)

    def read(self, path: str) -> bytes:
        return self._files[path]

    def read_many(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        return ((path, self._files[path]) for path in paths)

    def changed_since(self, commit: str) -> frozenset[str]:
        return frozenset(path for path, data in self._files.items() if self._earlier.get(path) != data)


def _entry(data: bytes, mode: str) -> Entry:
    return Entry(mode, "blob", blob_id(data), len(data))

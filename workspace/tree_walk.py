"""Walking trees by their objects: all leaves of one, and what differs between two.

No git process per question, and only folders that differ are read. Modes come as they are written in the trees.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from workspace.objects import TREE_MODE, ObjectReader, TreeItem


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a tree says about a path that is not a folder."""

    mode: str
    oid: str


Difference = tuple[Leaf | None, Leaf | None]


def leaves(reader: ObjectReader, tree: str) -> dict[bytes, Leaf]:
    """Every path below the tree that is not a folder, in byte order."""
    found: dict[bytes, Leaf] = {}
    level = [(b"", tree)]
    while level:
        reader.load_trees(oid for _, oid in level)
        below: list[tuple[bytes, str]] = []
        for prefix, oid in level:
            for name, item in reader.tree(oid).items():
                path = prefix + name
                if item.is_tree:
                    below.append((path + b"/", item.oid))
                else:
                    found[path] = Leaf(item.mode, item.oid)
        level = below
    return dict(sorted(found.items()))


def differences(reader: ObjectReader, old_tree: str, new_tree: str) -> dict[bytes, Difference]:
    """(before, after) of every path that differs, in byte order; None where nothing (or a folder) stands."""
    found: dict[bytes, Difference] = {}
    level: list[tuple[bytes, str | None, str | None]] = [(b"", old_tree, new_tree)] * (old_tree != new_tree)
    while level:
        reader.load_trees(oid for _, old, new in level for oid in (old, new) if oid is not None)
        below: list[tuple[bytes, str | None, str | None]] = []
        for prefix, old, new in level:
            for name, before, after in _differing(_rows(reader, old), _rows(reader, new)):
                path = prefix + name
                old_leaf, old_folder = _split(before)
                new_leaf, new_folder = _split(after)
                if old_leaf is not None or new_leaf is not None:
                    found[path] = (old_leaf, new_leaf)
                if old_folder is not None or new_folder is not None:
                    below.append((path + b"/", old_folder, new_folder))
        level = below
    return dict(sorted(found.items()))


def leaf_at(reader: ObjectReader, tree: str, path: bytes) -> Leaf | None:
    """What stands at one path; None for nothing and for a folder."""
    *folders, name = path.split(b"/")
    for folder in folders:
        item = _rows(reader, tree).get(folder)
        if item is None or not item.is_tree:
            return None
        tree = item.oid
    leaf, _ = _split(_rows(reader, tree).get(name))
    return leaf


def clashes(reader: ObjectReader, tree: str, changes: Mapping[bytes, object | None]) -> set[bytes]:
    """Changed paths that cannot stand beside what else will stand: a file where a folder is, and the other way.

    `changes` maps a path to its new content, or to None where it goes.
    """
    standing = {path for path, new in changes.items() if new is not None}
    folders = {parent for path in standing for parent in parents(path)}
    bad = standing & folders
    bad |= {path for path in standing if any(parent in bad for parent in parents(path))}
    for path in standing - bad:
        if leaf_at(reader, tree, path) is not None:
            continue
        files_above = (p for p in parents(path) if leaf_at(reader, tree, p) is not None)
        in_the_way = chain(files_above, _below(reader, tree, path))
        if any(changes.get(other, other) is not None for other in in_the_way):
            bad.add(path)
    return bad


def parents(path: bytes) -> Iterator[bytes]:
    """The folders that a path lies in, nearest first."""
    at = path.rfind(b"/")
    while at > 0:
        yield path[:at]
        at = path.rfind(b"/", 0, at)


def canonical_mode(mode: str) -> str:
    """The mode as git writes it today: old trees hold 100664 and the like, which mean 100644."""
    if not mode.startswith("100"):
        return mode
    return "100755" if int(mode, 8) & 0o100 else "100644"


def _below(reader: ObjectReader, tree: str, path: bytes) -> Iterator[bytes]:
    for folder in path.split(b"/"):
        item = _rows(reader, tree).get(folder)
        if item is None or not item.is_tree:
            return iter(())
        tree = item.oid
    return (path + b"/" + below for below in leaves(reader, tree))


def _rows(reader: ObjectReader, tree: str | None) -> Mapping[bytes, TreeItem]:
    return {} if tree is None else reader.tree(tree)


def _differing(
    old: Mapping[bytes, TreeItem], new: Mapping[bytes, TreeItem]
) -> Iterator[tuple[bytes, TreeItem | None, TreeItem | None]]:
    for name in chain(old, (name for name in new if name not in old)):
        before, after = old.get(name), new.get(name)
        if before != after:
            yield name, before, after


def _split(item: TreeItem | None) -> tuple[Leaf | None, str | None]:
    """(leaf, folder): one of them, or neither."""
    if item is None:
        return None, None
    return (None, item.oid) if item.mode == TREE_MODE else (Leaf(item.mode, item.oid), None)

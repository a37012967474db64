"""Composing results onto a head: paths are put side by side, text is never merged.

Two results that change one path, and a path that the head changed since the result's base, are conflicts: the step
runs again. So the outcome cannot depend on the order in which results came in.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from workspace.objects import ObjectReader
from workspace.tree_walk import Leaf, canonical_mode, clashes, differences, leaf_at


@dataclass(frozen=True, slots=True)
class Spliced:
    """What each path becomes on the head (None: goes); `conflicts` maps paths to the results that fight over them."""

    changes: dict[bytes, Leaf | None]
    conflicts: dict[bytes, tuple[str, ...]]


def splice(reader: ObjectReader, head: str, results: Sequence[tuple[str, str]]) -> Spliced:
    """Lay (base, result) pairs of commits over the head commit."""
    head_tree = reader.commit(head).tree
    wanted: dict[bytes, Leaf | None] = {}
    owners: defaultdict[bytes, set[str]] = defaultdict(set)
    conflicts: set[bytes] = set()
    for base, result in sorted(set(results)):
        changed = differences(reader, reader.commit(base).tree, reader.commit(result).tree)
        for path, (before, after) in changed.items():
            stands = leaf_at(reader, head_tree, path)
            if path in wanted or not _same(before, stands):
                conflicts.add(path)
            wanted[path] = after
            owners[path].add(result)
    conflicts |= clashes(reader, head_tree, wanted)
    return Spliced(
        changes={path: wanted[path] for path in sorted(wanted)},
        conflicts={path: tuple(sorted(_fighters(path, owners))) for path in sorted(conflicts)},
    )


def _fighters(path: bytes, owners: dict[bytes, set[str]]) -> set[str]:
    """The results that change the path itself, or what lies in or around it."""
    around = (p for p in owners if p.startswith(path + b"/") or path.startswith(p + b"/"))
    return owners[path].union(*(owners[p] for p in around))


def _same(one: Leaf | None, other: Leaf | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.oid == other.oid and canonical_mode(one.mode) == canonical_mode(other.mode)

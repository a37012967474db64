"""How a rule is cut: shards of about the same amount of work, as ranges of paths, with a small canary among them."""

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.scope import Shard, path_key

# About this much work to a shard: long enough that its way over the bus does not count, short enough to be made again.
SHARD_SECONDS = 1.5
# A canary is a fraction of a shard, and a handful of files at most.
CANARY_SECONDS = 0.3
CANARY_FILES = 12
# Bytes a second that one slot gets through, commit to commit, measured on Django's source (18 MB) with one core:
# patterns are parsed (and dense ones take ten times as long as rare ones), text is only searched, ruff is fast. A
# plug-in is asked for little until it was measured.
BYTES_A_SECOND = {
    "rewrite.pattern": 3_000_000,
    "text.replace": 15_000_000,
    "lint.fix": 12_000_000,
    "rename.symbol": 8_000_000,
}
UNKNOWN_BYTES_A_SECOND = 1_000_000
# A canary is small, so what it took says little: it moves the estimate by this factor at most.
ESTIMATE_FACTOR = 4.0
# What every action takes besides its work: starting, reading the tree, writing the commit.
OVERHEAD_S = 0.15


@dataclass(frozen=True, slots=True)
class Sized:
    """A file that a rule would look at."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The shards of a rule, in order and without gaps, and the index of the canary."""

    shards: tuple[Shard, ...]
    canary: int | None = None


def rate_of(contract: str) -> float:
    """Bytes a second that are expected of a contract (`name@version`)."""
    return BYTES_A_SECOND.get(contract.partition("@")[0], UNKNOWN_BYTES_A_SECOND)


def measured_rate(expected: float, size_bytes: int, wall_ms: int) -> float:
    """The expectation, corrected by what a canary of this size took."""
    if size_bytes <= 0 or wall_ms <= 0:
        return expected
    seconds = max(wall_ms / 1000 - OVERHEAD_S, 0.01)
    return min(max(size_bytes / seconds, expected / ESTIMATE_FACTOR), expected * ESTIMATE_FACTOR)


def canary_of(files: Sequence[Sized], first_site: str, rate: float) -> Shard:
    """A small shard that begins at the first file with a site. `rate` is the expected one, so that a revision keeps it."""
    target = rate * CANARY_SECONDS
    first = next(index for index, file in enumerate(files) if file.path == first_site)
    size, index = 0.0, first
    while index < len(files) and index - first < CANARY_FILES and (index == first or size < target):
        size += files[index].size_bytes
        index += 1
    return Shard(start=first_site, stop=files[index].path if index < len(files) else None)


def cut(files: Sequence[Sized], rate: float, *, canary: Shard | None = None) -> Cut:
    """Shards over `files` (in byte order) at so many bytes a second, the canary one of them if there are several."""
    starts = [""]
    size = 0.0
    for file in files:
        if size and size + file.size_bytes > rate * SHARD_SECONDS:
            starts.append(file.path)
            size = 0.0
        size += file.size_bytes
    if len(starts) < 2 or canary is None:
        return Cut(_ranges(starts))
    outside = {start for start in starts if not canary.holds(start)}
    ends = {canary.start} | ({canary.stop} if canary.stop is not None else set())
    shards = _ranges(sorted(outside | ends | {""}, key=path_key))
    return Cut(shards, canary=next(index for index, one in enumerate(shards) if one.start == canary.start))


def _ranges(starts: Sequence[str]) -> tuple[Shard, ...]:
    stops: list[str | None] = [*starts[1:], None]
    return tuple(Shard(start=start, stop=stop) for start, stop in zip(starts, stops, strict=True))

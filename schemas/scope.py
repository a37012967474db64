"""Which paths an action may see: globs in and out, and the shard's range of paths.

Globs: `*` stays in one folder, `**` crosses folders, `**/x` also matches `x`, a leading dot is nothing special,
a trailing `/` means everything below. Paths are git's: `/`-separated, relative, compared byte for byte.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from re import Pattern
from re import compile as compile_re

from pydantic import Field
from wcmatch import glob

from schemas.base import Strict

_FLAGS = glob.GLOBSTAR | glob.DOTGLOB | glob.BRACE | glob.FORCEUNIX


class Scope(Strict):
    """Paths that some `include` glob matches and no `exclude` glob does."""

    include: tuple[str, ...] = ("**",)
    exclude: tuple[str, ...] = ()

    def admits(self, path: str) -> bool:
        """True if the path is in scope."""
        return _matches(self.include, path) and not _matches(self.exclude, path)


class Shard(Strict):
    """A half-open range of paths in byte order: `start` ≤ path < `stop`; `stop=None` means to the end.

    A range instead of a list: it stays small in a message, and a file that an earlier rule added belongs to
    exactly one shard too.
    """

    start: str = ""
    stop: str | None = None

    def holds(self, path: str) -> bool:
        """True if the path lies in this range."""
        key = path_key(path)
        return path_key(self.start) <= key and (self.stop is None or key < path_key(self.stop))


class Reach(Strict):
    """Everything that bounds an action: every scope must admit a path, and the shard must hold it."""

    scopes: tuple[Scope, ...] = ()
    shard: Shard = Field(default_factory=Shard)

    def admits(self, path: str) -> bool:
        """True if the action may read and change the path."""
        return self.shard.holds(path) and all(scope.admits(path) for scope in self.scopes)

    def select(self, paths: Iterable[str]) -> tuple[str, ...]:
        """The admitted paths, in byte order."""
        return tuple(sorted((p for p in paths if self.admits(p)), key=path_key))


def path_key(path: str) -> bytes:
    """The order of paths everywhere: git's own bytes (undecodable ones travel as surrogate escapes)."""
    return path.encode("utf-8", "surrogateescape")


def _matches(globs: Sequence[str], path: str) -> bool:
    return any(pattern.match(path) for pattern in _compiled(tuple(globs)))


@lru_cache(maxsize=512)
def _compiled(globs: tuple[str, ...]) -> tuple[Pattern[str], ...]:
    return tuple(compile_re(expression) for one in globs for expression in _expressions(one))


def _expressions(one: str) -> list[str]:
    # "src/" and "src/**" mean the same to everyone who types them.
    pattern = one + "**" if one.endswith("/") else one
    wanted, _ = glob.translate(pattern.removeprefix("./"), flags=_FLAGS)
    return list(wanted)

"""A hub that is a git URL: fetched from by commit, pushed to by ref, with tries again where the line is to blame.

The cache is shallow: a worker needs the tree of its base, not the history behind it. A lock on the cache keeps the
slots of one machine from fetching the same thing twice at once.
"""

import fcntl
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from schemas.errors import SettingsError, WorkspaceError
from workspace.git import NETWORK_LIMIT_S, GitError, git
from workspace.hub_store import ObjectFormat

# Seconds before the second, third, ... try: a hub that restarts is back within these.
PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0)
# What the server said with full knowledge: asking again changes nothing.
_FINAL = (
    "not our ref", "no such remote ref", "couldn't find remote ref", "[rejected]", "stale info", "hook declined",
    "does not appear to be a git repository", "repository not found", "no such file or directory",
    "authentication failed", "could not read username", "permission denied", "shallow update not allowed",
    "transport '", "missing necessary objects", "fsck error", "bad object",
)  # fmt: skip
FETCH = (
    "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
    "--refmap=",
)  # fmt: skip
# A pack arrives as one file or not at all; loose objects of a fetch that died would look like a whole commit.
FETCH_SETTINGS = ("fetch.unpackLimit=1",)


class Remote:
    """The hub behind a URL, and the local bare repository that caches it."""

    def __init__(self, url: str, cache: Path, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.url = url
        self._cache = cache
        self._sleep = sleep

    def fetch(self, oid: str, is_here: Callable[[], bool]) -> None:
        """Bring a commit (its tree, not its history) or a blob into the cache. Raises WorkspaceError."""
        with locked(self._cache):
            if is_here():
                return
            try:
                self._fetch(oid)
            except GitError as error:
                # Old or strict servers hand out refs only.
                ref = next((name for name, at in self.refs("refs/").items() if at == oid), None)
                if ref is None:
                    raise WorkspaceError(
                        f"The hub at {shown(self.url)} does not hold {oid}.",
                        suggestion="Results and bases need a ref there; its retention may have ended.",
                    ) from error
                self._fetch(ref)

    def push(self, ref: str, new: str | None) -> None:
        """Point a ref of the hub at an object, whatever it pointed at before."""
        self._patiently("push", "--quiet", "--no-verify", "--force", self.url, f"{new or ''}:{ref}")

    def push_if(self, ref: str, new: str | None, old: str | None) -> bool:
        """Move a ref of the hub only if it stands at `old` (None: is not there)."""
        lease = f"--force-with-lease={ref}:{old or ''}"
        try:
            self._patiently("push", "--quiet", "--no-verify", lease, self.url, f"{new or ''}:{ref}")
        except GitError as error:
            # A try that timed out may have landed: then the second one finds the ref moved, by us.
            if "stale info" in error.stderr or "rejected" in error.stderr:
                return new is not None and self.refs(ref).get(ref) == new
            raise
        return True

    def refs(self, prefix: str) -> dict[str, str]:
        """The hub's refs below a prefix (or of that very name)."""
        listed = self._patiently("ls-remote", "--quiet", self.url).decode("utf-8", "surrogateescape")
        pairs = (line.split("\t", 1) for line in listed.splitlines())
        return {name: oid for oid, name in pairs if name.startswith(prefix) and not name.endswith("^{}")}

    def object_format(self) -> ObjectFormat:
        """`sha1` or `sha256`, by the ids it shows; sha1 if it is empty."""
        try:
            everything = self.refs("")
        except GitError as error:
            raise SettingsError(
                f"The hub at {shown(self.url)} cannot be read: {error.stderr.strip()[-300:]}",
                suggestion="Check the URL and this machine's access to it (`git ls-remote URL`).",
            ) from error
        return "sha256" if any(len(oid) == 64 for oid in everything.values()) else "sha1"

    def _fetch(self, what: str) -> None:
        self._patiently(*FETCH, "--depth=1", self.url, what, settings=FETCH_SETTINGS)

    def _patiently(self, *arguments: str, settings: tuple[str, ...] = ()) -> bytes:
        return patiently(self._cache, *arguments, settings=settings, sleep=self._sleep)


def patiently(
    repository: Path,
    *arguments: str,
    settings: tuple[str, ...] = (),
    sleep: Callable[[float], None] = time.sleep,
) -> bytes:
    """Run git against another repository, again after a pause where the line may be to blame. Raises GitError."""
    for pause_s in PAUSES_S:
        try:
            return git(repository, *arguments, settings=settings, limit_s=NETWORK_LIMIT_S)
        except GitError as error:
            if any(words in error.stderr.lower() for words in _FINAL):
                raise
            sleep(pause_s)
    return git(repository, *arguments, settings=settings, limit_s=NETWORK_LIMIT_S)


def shown(url: str) -> str:
    """A URL without the password that it may carry."""
    return re.sub(r"(://[^/:@]*):[^/@]*@", r"\1:***@", url)


@contextmanager
def locked(repository: Path) -> Iterator[None]:
    """Hold the one lock of ours on a repository; the kernel frees it when a holder dies."""
    with (repository / "rolecall.lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

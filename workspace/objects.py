"""Reading objects of one repository through a long-lived `git cat-file --batch`, and taking trees apart.

Trees are parsed strictly: a name that is empty, repeated, out of order or holds a `/` is refused, because git's own
diff would look past the second of two equal names.
"""

import re
import subprocess
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import Lock, RLock
from typing import IO

from schemas.errors import WorkspaceError
from workspace.git import git_command, git_environment

# So many requests are written before the first answer is read: they must fit the pipe's 64 KiB at 65 bytes each.
_IN_FLIGHT = 256
# What one process remembers; a large repository has some ten thousand of each.
_TREES_KEPT = 20_000
_SIZES_KEPT = 500_000

TREE_MODE = "040000"
_Answer = tuple[str, int, bytes]
_OID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?").fullmatch


class MissingObjectError(WorkspaceError):
    """The repository does not hold this object."""

    def __init__(self, oid: str) -> None:
        self.oid = oid
        super().__init__(f"The repository does not hold object {oid}.")


class BadTreeError(WorkspaceError):
    """A tree that git would not have written."""


@dataclass(frozen=True, slots=True)
class TreeItem:
    """One row of a tree: mode as written with leading zeros made up, name as bytes."""

    mode: str
    name: bytes
    oid: str

    @property
    def is_tree(self) -> bool:
        """True for a folder."""
        return self.mode == TREE_MODE


@dataclass(frozen=True)
class Commit:
    """A commit, taken apart: header lines in order (continuation lines joined), then the message."""

    headers: tuple[tuple[bytes, bytes], ...]
    message: bytes

    @cached_property
    def tree(self) -> str:
        """The id of its tree."""
        return self.header(b"tree").decode()

    @property
    def parents(self) -> tuple[str, ...]:
        """The ids of its parents."""
        return tuple(value.decode() for key, value in self.headers if key == b"parent")

    @property
    def date(self) -> bytes:
        """The committer's time as git writes it (`1700000000 +0100`); the epoch if it is malformed."""
        words = self.header(b"committer").rsplit(b">", 1)[-1].split()
        seconds, zone = words if len(words) == 2 else (b"", b"")
        is_sane = seconds.isdigit() and len(seconds) <= 12 and len(zone) == 5 and zone[:1] in b"+-"
        return b"%s %s" % (seconds, zone) if is_sane and zone[1:].isdigit() else b"0 +0000"

    def header(self, key: bytes) -> bytes:
        """The first header of that key, empty if there is none."""
        return next((value for k, value in self.headers if k == key), b"")


class ObjectReader:
    """Objects of one repository by id. Safe for several threads; the helper process starts when first needed."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._contents = _Batch(repository, "--batch")
        self._headers = _Batch(repository, "--batch-check")
        self._trees: OrderedDict[str, dict[bytes, TreeItem]] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._memory_lock = RLock()

    def close(self) -> None:
        """End the helper processes; a later read starts them again."""
        self._contents.close()
        self._headers.close()

    def read(self, oid: str) -> tuple[str, bytes]:
        """(kind, content). Raises MissingObjectError."""
        return next(self.read_many([oid]))

    def read_many(self, oids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """(kind, content) of each, in order; a group at a time, so that large trees do not pile up in memory."""
        for group in _groups(oids):
            for oid, answer in zip(group, self._contents.ask(group), strict=True):
                kind, _size, content = _present(oid, answer)
                yield kind, content

    def kind(self, oid: str) -> str | None:
        """The kind of an object, None if it is not here."""
        return self.kinds([oid])[oid]

    def kinds(self, oids: Iterable[str]) -> dict[str, str | None]:
        """The kind of each object, None for what is not here."""
        found: dict[str, str | None] = {}
        for group in _groups(oids):
            answers = self._headers.ask(group)
            found |= {oid: answer and answer[0] for oid, answer in zip(group, answers, strict=True)}
        return found

    def sizes(self, oids: Iterable[str]) -> dict[str, int]:
        """The size of each object in bytes. Raises MissingObjectError."""
        wanted = list(dict.fromkeys(oids))
        with self._memory_lock:
            if len(self._sizes) > _SIZES_KEPT:
                self._sizes.clear()
            for group in _groups([oid for oid in wanted if oid not in self._sizes]):
                for oid, answer in zip(group, self._headers.ask(group), strict=True):
                    self._sizes[oid] = _present(oid, answer)[1]
            return {oid: self._sizes[oid] for oid in wanted}

    def commit(self, oid: str) -> Commit:
        """A commit, taken apart. Raises WorkspaceError if it is something else."""
        kind, content = self.read(oid)
        if kind != "commit":
            raise WorkspaceError(f"{oid} is a {kind}, not a commit.")
        return parse_commit(content)

    def tree(self, oid: str) -> Mapping[bytes, TreeItem]:
        """The rows of a tree by name. Raises BadTreeError if git would not have written it."""
        with self._memory_lock:
            self.load_trees([oid])
            self._trees.move_to_end(oid)
            return self._trees[oid]

    def load_trees(self, oids: Iterable[str]) -> None:
        """Fetch many trees at once into memory, for those who walk level by level."""
        with self._memory_lock:
            unknown = [oid for oid in dict.fromkeys(oids) if oid not in self._trees]
            for oid, (kind, content) in zip(unknown, self.read_many(unknown), strict=True):
                if kind != "tree":
                    raise BadTreeError(f"{oid} is a {kind} where a folder should be.")
                self._trees[oid] = parse_tree(content, oid)
            while len(self._trees) > max(_TREES_KEPT, len(unknown)):
                self._trees.popitem(last=False)


def parse_commit(content: bytes) -> Commit:
    """Take a commit apart."""
    head, _, message = content.partition(b"\n\n")
    lines = head.replace(b"\n ", b"\0").split(b"\n")
    pairs = (line.replace(b"\0", b"\n ").partition(b" ") for line in lines)
    return Commit(tuple((key, value) for key, _, value in pairs), message)


def parse_tree(content: bytes, oid: str) -> dict[bytes, TreeItem]:
    """The rows of a tree by name, checked as git itself would write them. Raises BadTreeError."""
    id_bytes = len(oid) // 2
    items: dict[bytes, TreeItem] = {}
    at, previous = 0, b""
    while at < len(content):
        space = content.find(b" ", at, at + 8)
        end = content.find(b"\0", space)
        name = content[space + 1 : end]
        if space < 0 or end < 0 or end + 1 + id_bytes > len(content) or not name or b"/" in name:
            raise BadTreeError(f"Tree {oid} is malformed at byte {at}.")
        mode = content[at:space].decode("ascii", "replace").zfill(6)
        # git sorts folders as if their name ended in a slash; equal names can then lie apart, so look at both.
        key = name + b"/" if mode == TREE_MODE else name
        if key <= previous or name in items:
            raise BadTreeError(f"Tree {oid} is out of order or holds a name twice at {name!r}.")
        previous = key
        at = end + 1 + id_bytes
        items[name] = TreeItem(mode, name, content[end + 1 : at].hex())
    return items


class _Batch:
    """One `git cat-file` helper: ids in, answers out. It is started again when it is found dead."""

    def __init__(self, repository: Path, mode: str) -> None:
        self._repository = repository
        self._mode = mode
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def ask(self, oids: list[str]) -> list[_Answer | None]:
        """One answer each, None for what is not there; the content is empty in check mode."""
        with self._lock:
            try:
                return self._ask_patiently(oids)
            except BaseException:
                # Interrupted between question and answer: what is still in the pipe belongs to nobody.
                self._stop()
                raise

    def close(self) -> None:
        with self._lock:
            self._stop()

    def _ask_patiently(self, oids: list[str]) -> list[_Answer | None]:
        try:
            return self._ask(oids)
        except (BrokenPipeError, EOFError):
            self._stop()
        try:
            return self._ask(oids)
        except (BrokenPipeError, EOFError) as error:
            raise WorkspaceError(
                f"git cannot read the objects of {self._repository}.",
                suggestion=f"`git -C {self._repository} fsck` shows why.",
            ) from error

    def _ask(self, oids: list[str]) -> list[_Answer | None]:
        if not all(map(_OID, oids)):
            raise WorkspaceError(f"Not all of these are object ids: {oids[:3]!r}.")
        to, answers = self._pipes()
        to.write("".join(f"{oid}\n" for oid in oids).encode("ascii"))
        to.flush()
        return [self._answer(answers) for _ in oids]

    def _answer(self, answers: IO[bytes]) -> _Answer | None:
        words = answers.readline().split()
        if len(words) == 2 and words[1] == b"missing":
            return None
        if len(words) != 3:
            raise EOFError
        size = int(words[2])
        if self._mode == "--batch-check":
            return words[1].decode(), size, b""
        content = answers.read(size + 1)
        if len(content) != size + 1:
            raise EOFError
        return words[1].decode(), size, content[:-1]

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = subprocess.Popen(
                git_command(self._repository, "cat-file", self._mode),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=git_environment(),
                bufsize=1 << 17,
            )
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise WorkspaceError("git cat-file has no pipes.")
        return process.stdin, process.stdout

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                # A write that never reached the dead helper would be tried again by close().
                with suppress(OSError):
                    pipe.close()


def _present(oid: str, answer: _Answer | None) -> _Answer:
    if answer is None:
        raise MissingObjectError(oid)
    return answer


def _groups(oids: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(oids)
    while group := list(islice(rest, _IN_FLIGHT)):
        yield group

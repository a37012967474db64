"""Writing commits: one `git fast-import` per commit, with an id that follows from its content alone."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from schemas.errors import ContractError
from workspace.entries import NewFile
from workspace.git import git, quote_path
from workspace.objects import Commit
from workspace.tree_walk import Leaf, canonical_mode

# The one author of everything that we commit; the dates are the base commit's, so that ids repeat.
AUTHOR = "Rolecall <rolecall@localhost>"
# Fewer objects than this become loose files, more become a pack. A pack is written three times as fast, but every
# git process opens every pack: results of a few files must not leave thousands of them.
_UNPACK_LIMIT = 32
# Never written: it is reset before fast-import would update it. The commit gets its refs from the caller.
_SCRATCH_REF = b"refs/rolecall-unborn"

Content = NewFile | Leaf | None
"""What shall stand at a path: new bytes, an object that is there already, or nothing."""


def write_commit(
    repository: Path, base: str, base_commit: Commit, changes: Mapping[bytes, Content], *, message: str
) -> str:
    """Commit the changes on top of `base`; gives back the new commit's id. No ref points at it yet."""
    try:
        said = git(
            repository,
            "fast-import",
            "--quiet",
            stdin=b"".join(_stream(base, base_commit.date, changes, message)),
            settings=(f"fastimport.unpackLimit={_UNPACK_LIMIT}",),
        )
    finally:
        _remove_crash_reports(repository)
    return said.decode("ascii").strip()


def identity(date: bytes) -> bytes:
    """The author and committer header of a commit of ours on a base of that date."""
    return f"{AUTHOR} ".encode() + date


def _stream(base: str, date: bytes, changes: Mapping[bytes, Content], message: str) -> list[bytes]:
    text = message.encode("utf-8")
    if not text.strip() or b"\0" in text:
        raise ContractError("A commit needs a message, without NUL.")
    parts = [
        b"feature done\ncommit %s\nmark :1\n" % _SCRATCH_REF,
        b"author %s\ncommitter %s\n" % (identity(date), identity(date)),
        b"data %d\n%s\nfrom %s\n" % (len(text), text, base.encode("ascii")),
    ]
    # Deletions first: a file may go where a folder comes.
    parts += [b"D %s\n" % quote_path(path) for path in sorted(changes) if changes[path] is None]
    for path, content in sorted(changes.items()):
        if isinstance(content, Leaf):
            mode = canonical_mode(content.mode).encode("ascii")
            parts.append(b"M %s %s %s\n" % (mode, content.oid.encode("ascii"), quote_path(path)))
        elif content is not None:
            mode = canonical_mode(content.mode).encode("ascii")
            parts.append(b"M %s inline %s\ndata %d\n" % (mode, quote_path(path), len(content.data)))
            parts += [content.data, b"\n"]
    parts.append(b"reset %s\n\nget-mark :1\ndone\n" % _SCRATCH_REF)
    return parts


def _remove_crash_reports(repository: Path) -> None:
    for report in repository.glob("fast_import_crash_*"):
        with suppress(OSError):
            report.unlink()

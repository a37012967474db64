"""Builders for tests of workspace/: repositories of a user, and hubs with a base commit."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from workspace.entries import FILE_MODE, NewFile
from workspace.hub import Hub
from workspace.hub_store import ObjectFormat

_ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "1700000000 +0100",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_COMMITTER_DATE": "1700000500 +0100",
}


def run_git(where: Path, *arguments: str | bytes, stdin: bytes = b"") -> str:
    """Plain git, as a user at a terminal has it; gives back what it said, stripped."""
    done = subprocess.run(
        ["git", *arguments], cwd=where, input=stdin, capture_output=True, env=_ENV, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def new_repository(folder: Path, files: Mapping[str, str], *, object_format: ObjectFormat = "sha1") -> Path:
    """A user's repository with one commit."""
    folder.mkdir(parents=True)
    run_git(folder, "init", "--quiet", "--initial-branch=main", f"--object-format={object_format}")
    save(folder, files)
    return folder


def save(folder: Path, files: Mapping[str, str], message: str = "a commit") -> str:
    """Write files and commit them; gives back the commit."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    run_git(folder, "add", "--all")
    run_git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return run_git(folder, "rev-parse", "HEAD")


def tree_of(hub: Hub, rows: list[tuple[str, bytes, str]]) -> str:
    """A tree with exactly these (mode, name, oid) rows, however odd, unchecked."""
    content = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in rows)
    return run_git(hub.repository, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=content)


def root_commit(hub: Hub, files: Mapping[str, bytes | NewFile]) -> str:
    """A commit without parent that holds these files: a base, put into the hub directly."""
    tree = run_git(hub.repository, "mktree", stdin=b"")
    seconds = 1700000500
    content = f"tree {tree}\nauthor Ada <ada@example.org> {seconds} +0100\ncommitter Ada <ada@example.org> {seconds} +0100\n\nbase\n"
    empty = run_git(hub.repository, "hash-object", "-t", "commit", "-w", "--stdin", stdin=content.encode())
    wanted = {path: NewFile(FILE_MODE, f) if isinstance(f, bytes) else f for path, f in files.items()}
    return hub.commit(empty, wanted, message="base")


def files_at(hub: Hub, commit: str) -> dict[str, bytes]:
    """Every file of a commit with its bytes."""
    return {
        path: hub.read(entry.oid) for path, entry in hub.list_tree(commit).items() if entry.kind == "blob"
    }


def change(hub: Hub, base: str, **files: str | None) -> str:
    """A result on `base`: `a_py="x"` writes a.py (the last underscore is a dot), None deletes."""
    wanted = {
        ".".join(name.rsplit("_", 1)): None if text is None else NewFile(FILE_MODE, text.encode())
        for name, text in files.items()
    }
    return hub.commit(base, wanted, message="change")

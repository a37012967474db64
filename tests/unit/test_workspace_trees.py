"""Disposable trees: exactly the commit, whatever was done in them before; and a safe walk over what came out."""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.errors import WorkspaceError
from tests.unit.workspace_repos import change, root_commit, run_git, tree_of
from workspace.entries import EXECUTABLE_MODE, FILE_MODE, LINK_MODE, NewFile, to_bytes
from workspace.hub import Hub
from workspace.trees import DisposableTree, TreeKeeper
from workspace.walking import remove_tree

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
ATTRIBUTES = b"*.bin filter=lfs diff=lfs merge=lfs -text\n*.txt text eol=crlf ident\n"
BASE: dict[str, bytes | NewFile] = {
    ".gitattributes": ATTRIBUTES,
    "run.sh": NewFile(EXECUTABLE_MODE, b"#!/bin/sh\necho hi\n"),
    "link": NewFile(LINK_MODE, b"src/a.py"),
    "folder-link": NewFile(LINK_MODE, b"src"),
    "src/a.py": b"a\n",
    "src/crlf.txt": b"$Id$\r\nx\r\n",
    "src/big.bin": POINTER,
    b"latin-\xe4\n.py".decode("utf-8", "surrogateescape"): b"odd\n",
}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub.create(tmp_path / "hub.git") as hub:
        yield hub


@pytest.fixture
def base(hub: Hub) -> str:
    plain = root_commit(hub, BASE)
    rows = [
        line.split(None, 3) for line in run_git(hub.repository, "ls-tree", "-z", plain).split("\0") if line
    ]
    items = [(mode, to_bytes(name), oid) for mode, _kind, oid, name in rows]
    tree = tree_of(hub, sorted([*items, ("160000", b"submodule", "1" * 40)], key=lambda row: row[1]))
    return run_git(hub.repository, "commit-tree", "-p", plain, "-m", "with submodule", tree)


@pytest.fixture
def tree(hub: Hub, base: str, tmp_path: Path) -> Iterator[DisposableTree]:
    with DisposableTree(hub, base, tmp_path / "tree") as tree:
        yield tree


def state(folder: Path) -> dict[bytes, tuple[str, bytes | None]]:
    """Everything below a folder: what it is with its permissions, and its content (None for a folder)."""
    found: dict[bytes, tuple[str, bytes | None]] = {}
    root = os.fsencode(folder)
    for where, folders, files in os.walk(root):
        for name in [*folders, *files]:
            path = where + b"/" + name
            shown = Path(os.fsdecode(path))
            mode = shown.lstat().st_mode
            content = None
            if stat.S_ISLNK(mode):
                content = os.fsencode(shown.readlink())
            elif stat.S_ISREG(mode):
                content = shown.read_bytes()
            found[path.removeprefix(root + b"/")] = (oct(mode), content)
    return found


def wreck(folder: Path) -> None:
    """What a test suite, or somebody worse, does in its tree."""
    (folder / "src/a.py").write_bytes(b"b\n")
    (folder / "run.sh").chmod(0o644)
    (folder / "link").unlink()
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "src/crlf.txt").unlink()
    (folder / "new").mkdir(mode=0o000)
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("[core]\n\tfsmonitor = touch RAN\n")
    (folder / "submodule/inside.py").write_text("x")
    os.mkfifo(folder / "fifo")
    os.link(folder / ".gitattributes", folder / "hardlink")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/a.pyc").write_bytes(b"\0")
    (folder / "src").chmod(0o500)


def test_a_tree_holds_bytes_modes_links_and_names_as_the_commit_has_them(tree: DisposableTree) -> None:
    written = state(tree.path)

    files = {path: content for path, (_, content) in written.items() if content is not None}
    assert files == {to_bytes(path): f.data if isinstance(f, NewFile) else f for path, f in BASE.items()}
    assert stat.S_IMODE((tree.path / "run.sh").stat().st_mode) & 0o111
    assert not stat.S_IMODE((tree.path / "src/a.py").stat().st_mode) & 0o111
    assert (tree.path / "link").readlink() == Path("src/a.py")
    assert list((tree.path / "submodule").iterdir()) == []
    assert not (tree.path / ".git").exists()


def test_an_untouched_tree_has_no_changes(tree: DisposableTree) -> None:
    collected = tree.collect()

    assert (collected.changes, collected.left_out) == ({}, {})


def test_what_was_done_is_collected_by_a_walk_that_follows_no_link(tree: DisposableTree) -> None:
    outside = tree.path.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    wreck(tree.path)
    (tree.path / "src").chmod(0o755)
    (tree.path / "src/new.py").write_bytes(b"new\n")
    (tree.path / "way-out").symlink_to(outside)

    collected = tree.collect()

    assert collected.changes == {
        "__pycache__/a.pyc": NewFile(FILE_MODE, b"\0"),
        "hardlink": NewFile(FILE_MODE, ATTRIBUTES),
        "link": NewFile(LINK_MODE, b"/etc/passwd"),
        "run.sh": NewFile(FILE_MODE, b"#!/bin/sh\necho hi\n"),
        "src/a.py": NewFile(FILE_MODE, b"b\n"),
        "src/crlf.txt": None,
        "src/new.py": NewFile(FILE_MODE, b"new\n"),
        "way-out": NewFile(LINK_MODE, os.fsencode(outside)),
    }
    assert set(collected.left_out) == {".git", "fifo"}


def test_only_what_may_be_changed_is_taken_and_the_rest_is_named(tree: DisposableTree) -> None:
    (tree.path / "src/a.py").write_bytes(b"b\n")
    (tree.path / ".secrets").mkdir()
    (tree.path / ".secrets/token.json").write_text("t")
    (tree.path / "package-lock.json").write_text("{}")
    (tree.path / "run.sh").unlink()

    collected = tree.collect(lambda path: path.startswith("src/"))

    assert list(collected.changes) == ["src/a.py"]
    assert set(collected.left_out) == {".secrets/token.json", "package-lock.json", "run.sh"}


def test_a_change_that_keeps_size_and_time_is_still_seen(tree: DisposableTree) -> None:
    path = tree.path / "src/a.py"
    before = path.stat()

    path.write_bytes(b"b\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert list(tree.collect().changes) == ["src/a.py"]


def test_a_collected_change_becomes_a_commit_that_checks_out_the_same(
    hub: Hub, base: str, tree: DisposableTree
) -> None:
    (tree.path / "src/a.py").write_bytes(b"b\r\n")
    (tree.path / "run.sh").write_bytes(b"#!/bin/sh\necho ho\n")

    result = hub.commit(base, tree.collect().changes, message="m")

    assert [(c.path, c.old_mode, c.new_mode) for c in hub.changes(base, result)] == [
        ("run.sh", EXECUTABLE_MODE, EXECUTABLE_MODE),
        ("src/a.py", FILE_MODE, FILE_MODE),
    ]


def test_a_tree_that_was_wrecked_is_made_exactly_another_commit(
    hub: Hub, base: str, tree: DisposableTree, tmp_path: Path
) -> None:
    other = hub.commit(
        base,
        {
            "src/a.py": None,
            "src/a.py/now/a/folder.py": NewFile(FILE_MODE, b"f"),
            "link": NewFile(FILE_MODE, b"file"),
        },
        message="m",
    )
    wreck(tree.path)

    tree.fill(other)

    with DisposableTree(hub, other, tmp_path / "fresh") as fresh:
        assert state(tree.path) == state(fresh.path)
    wreck_again = tree.path / "submodule"
    wreck_again.rmdir()
    wreck_again.symlink_to("/")
    tree.fill(base)
    with DisposableTree(hub, base, tmp_path / "fresh") as fresh:
        assert state(tree.path) == state(fresh.path)


def test_a_kept_tree_writes_only_what_differs(hub: Hub, base: str, tmp_path: Path) -> None:
    keeper = TreeKeeper(hub, tmp_path / "trees")
    with keeper.at(base) as first:
        where = first.path
        inodes = {path: (where / path).lstat().st_ino for path in ("src/a.py", "run.sh")}

    with keeper.at(change(hub, base, x_py="x")) as second:
        assert second.path == where
        assert {path: (where / path).lstat().st_ino for path in inodes} == inodes
        with keeper.at(base) as third:
            assert third.path != where

    keeper.close()
    assert list((tmp_path / "trees").iterdir()) == []


def test_a_tree_that_cannot_be_deleted_plainly_is_deleted_still(tmp_path: Path) -> None:
    top = tmp_path / "tree"
    (top / "locked/inner").mkdir(parents=True)
    (top / "locked/inner/file").write_text("x")
    (top / "locked/inner").chmod(0o000)
    (top / "locked").chmod(0o000)
    deep = subprocess.run(
        [
            "python3",
            "-c",
            "import os\nfor _ in range(3000): os.mkdir('deep-folder'); os.chdir('deep-folder')",
        ],
        cwd=top,
        check=True,
    )
    assert deep.returncode == 0

    remove_tree(top)

    assert not top.exists()


def test_a_link_given_to_delete_loses_nothing_behind_it(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("x")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/link").symlink_to(tmp_path / "precious")

    remove_tree(tmp_path / "tree")

    assert (tmp_path / "precious/file").read_text() == "x"


def test_deep_folders_are_left_out_by_name(tree: DisposableTree) -> None:
    subprocess.run(
        ["python3", "-c", "import os\nfor _ in range(1000): os.mkdir('dd'); os.chdir('dd')"],
        cwd=tree.path,
        check=True,
    )

    (reason,) = tree.collect().left_out.values()

    assert reason == "is too deep"


@pytest.mark.parametrize("path", [b"../evil", b".git/hooks/post-checkout"])
def test_a_commit_with_dangerous_paths_is_not_written_to_disk(hub: Hub, tmp_path: Path, path: bytes) -> None:
    folder, name = path.rsplit(b"/", 1)
    tree = tree_of(hub, [("100755", name, hub.write_blob(b"x"))])
    for part in reversed(folder.split(b"/")):
        tree = tree_of(hub, [("040000", part, tree)])
    commit = run_git(hub.repository, "commit-tree", "-m", "m", tree)

    with pytest.raises(WorkspaceError, match="cannot be written to disk"):
        DisposableTree(hub, commit, tmp_path / "tree")

    assert not (tmp_path / "evil").exists()

"""The hub: what is read is what was written, ids follow from content, refs move by compare-and-swap."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from schemas.errors import ContractError, SettingsError
from schemas.words import ChangeKind
from tests.unit.workspace_repos import change, files_at, root_commit, run_git, save, tree_of
from workspace.entries import EXECUTABLE_MODE, FILE_MODE, LINK_MODE, NewFile
from workspace.git import GitError
from workspace.hub import Hub, PathChange
from workspace.hub_store import ObjectFormat
from workspace.objects import BadTreeError, MissingObjectError

ODD_PATHS = (
    "plain.py",
    "a folder/with space.py",
    "-leading-dash",
    'quo"te.py',
    "back`tick$HOME",
    "new\nline.py",
    "tab\t.py",
    "umlaut-ä.py",
    b"latin-\xe4.py".decode("utf-8", "surrogateescape"),
    "deep/" * 20 + "leaf",
)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub.create(tmp_path / "hub.git") as hub:
        yield hub


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_a_commit_holds_every_byte_mode_and_name_that_was_put_in(
    tmp_path: Path, object_format: ObjectFormat
) -> None:
    odd = b"\xef\xbb\xbfx = 1\r\ny = 2\n\x00\xff no newline at the end"
    with Hub.create(tmp_path / "hub.git", object_format=object_format) as hub:
        base = root_commit(hub, {"old.py": b"old\n"})

        result = hub.commit(
            base,
            {path: NewFile(FILE_MODE, odd) for path in ODD_PATHS}
            | {"run.sh": NewFile(EXECUTABLE_MODE, b"#!/bin/sh\n"), "link": NewFile(LINK_MODE, b"plain.py")},
            message="odd",
        )

        entries, files = hub.list_tree(result), files_at(hub, result)
    assert set(entries) == {"old.py", "run.sh", "link", *ODD_PATHS}
    assert list(entries) == sorted(entries, key=lambda p: p.encode("utf-8", "surrogateescape"))
    assert {files[path] for path in ODD_PATHS} == {odd}
    assert (entries["run.sh"].mode, entries["link"].mode) == (EXECUTABLE_MODE, LINK_MODE)
    assert entries["plain.py"].size == len(odd)
    run_git(hub.repository, "fsck", "--strict", result)


def test_the_same_change_on_the_same_base_has_the_same_id_in_every_hub(tmp_path: Path) -> None:
    ids = set()
    for name in ("one", "two"):
        with Hub.create(tmp_path / name) as hub:
            base = root_commit(hub, {f"f{i}.py": b"x" for i in range(100)})
            ids.add(hub.commit(base, {f"f{i}.py": NewFile(FILE_MODE, b"y") for i in range(60)}, message="m"))

    assert len(ids) == 1


def test_a_commit_carries_the_fixed_author_and_the_date_of_its_base(hub: Hub) -> None:
    base = root_commit(hub, {"a.py": b"1"})

    result = change(hub, base, a_py="2")

    shown = run_git(
        hub.repository, "show", "-s", "--date=raw", "--format=%an|%ae|%ad|%cn|%ce|%cd|%P|%B", result
    )
    who = "Rolecall|rolecall@localhost|1700000500 +0100"
    assert shown == f"{who}|{who}|{base}|change"


def test_no_difference_gives_the_base_itself(hub: Hub) -> None:
    base = root_commit(hub, {"a.py": b"1", "run": NewFile(EXECUTABLE_MODE, b"r")})

    same = hub.commit(
        base,
        {"a.py": NewFile(FILE_MODE, b"1"), "gone": None, "run": NewFile(EXECUTABLE_MODE, b"r")},
        message="m",
    )

    assert same == base


def test_a_folder_may_become_a_file_and_a_file_a_folder(hub: Hub) -> None:
    base = root_commit(hub, {"a/x.py": b"1", "b": b"2"})

    result = hub.commit(
        base,
        {"a/x.py": None, "a": NewFile(FILE_MODE, b"3"), "b": None, "b/y.py": NewFile(FILE_MODE, b"4")},
        message="m",
    )

    assert files_at(hub, result) == {"a": b"3", "b/y.py": b"4"}


@pytest.mark.parametrize(
    "wanted",
    [
        {"a": NewFile(FILE_MODE, b"")},
        {"b/c": NewFile(FILE_MODE, b"")},
        {"new": NewFile(FILE_MODE, b""), "new/x": NewFile(FILE_MODE, b"")},
    ],
)
def test_a_path_cannot_be_a_file_and_a_folder_at_once(hub: Hub, wanted: dict[str, NewFile]) -> None:
    base = root_commit(hub, {"a/x.py": b"1", "b": b"2"})

    with pytest.raises(ContractError, match="a file and a folder at once"):
        hub.commit(base, wanted, message="m")


@pytest.mark.parametrize(
    "path", [".git/config", "../evil", "a/../../evil", "/etc/passwd", "sub/.GIT/hooks/x", "a//b"]
)
def test_our_own_writer_refuses_paths_that_fast_import_would_take(hub: Hub, path: str) -> None:
    base = root_commit(hub, {"a.py": b"1"})

    with pytest.raises(ContractError, match="no result may hold it"):
        hub.commit(base, {path: NewFile(FILE_MODE, b"x")}, message="m")


def test_changes_tell_kind_modes_and_lines_of_every_path(hub: Hub) -> None:
    base = root_commit(hub, {"a.py": b"1\n2\n3\n", "gone.py": b"x\n", "run": b"r\n", "old.bin": b"\0\1"})
    result = hub.commit(
        base,
        {
            "a.py": NewFile(FILE_MODE, b"1\ntwo\n3\n4\n"),
            "gone.py": None,
            "run": NewFile(EXECUTABLE_MODE, b"r\n"),
            "old.bin": NewFile(FILE_MODE, b"\0\2"),
            "new\n.py": NewFile(FILE_MODE, b"n\n"),
        },
        message="m",
    )

    changes = hub.changes(base, result)

    told = [(c.path, c.change, c.old_mode, c.new_mode, c.added, c.removed) for c in changes]
    assert told == [
        ("a.py", ChangeKind.MODIFIED, FILE_MODE, FILE_MODE, 2, 1),
        ("gone.py", ChangeKind.DELETED, FILE_MODE, None, 0, 1),
        ("new\n.py", ChangeKind.ADDED, None, FILE_MODE, 1, 0),
        ("old.bin", ChangeKind.MODIFIED, FILE_MODE, FILE_MODE, 0, 0),
        ("run", ChangeKind.MODE, FILE_MODE, EXECUTABLE_MODE, 0, 0),
    ]
    assert hub.changes(base, base) == ()


def test_one_word_in_a_crlf_file_is_a_change_of_one_line(hub: Hub) -> None:
    base = root_commit(hub, {"a.txt": b"one\r\nfoo\r\nthree\r\n", ".gitattributes": b"* text=auto eol=lf\n"})

    result = hub.commit(base, {"a.txt": NewFile(FILE_MODE, b"one\r\nbar\r\nthree\r\n")}, message="m")

    (only,) = hub.changes(base, result)
    assert (only.added, only.removed) == (1, 1)
    assert files_at(hub, result)["a.txt"] == b"one\r\nbar\r\nthree\r\n"


def test_old_modes_of_old_repositories_are_no_change_and_survive_their_neighbours_change(hub: Hub) -> None:
    blob = hub.write_blob(b"x\n")
    tree = tree_of(hub, [("100664", b"a.py", blob), ("100664", b"b.py", blob)])
    base = run_git(hub.repository, "commit-tree", "-m", "old", tree)

    result = change(hub, base, a_py="y\n")

    assert [(c.path, c.change) for c in hub.changes(base, result)] == [("a.py", ChangeKind.MODIFIED)]
    assert hub.list_tree(base)["b.py"].mode == FILE_MODE


def test_a_submodule_stays_what_it_is_when_a_file_beside_it_changes(hub: Hub) -> None:
    blob = hub.write_blob(b"x\n")
    elsewhere = "1" * 40
    tree = tree_of(hub, [("100644", b"a.py", blob), ("160000", b"sub", elsewhere)])
    base = run_git(hub.repository, "commit-tree", "-m", "s", tree)

    result = change(hub, base, a_py="y\n")

    entry = hub.list_tree(result)["sub"]
    assert (entry.kind, entry.oid, entry.size) == ("commit", elsewhere, 0)
    assert [c.path for c in hub.changes(base, result)] == ["a.py"]


@pytest.mark.parametrize(
    "rows",
    [
        [("100644", b"a", "BLOB"), ("100644", b"a", "BLOB")],
        [("100644", b"b", "BLOB"), ("100644", b"a", "BLOB")],
        [("100644", b"", "BLOB")],
        [("100644", b"x/y", "BLOB")],
        [("100644", b"a", "BLOB"), ("100644", b"a.b", "BLOB"), ("040000", b"a", "EMPTY")],
    ],
)
def test_a_tree_that_git_would_not_write_is_refused(hub: Hub, rows: list[tuple[str, bytes, str]]) -> None:
    ids = {"BLOB": hub.write_blob(b"x"), "EMPTY": run_git(hub.repository, "mktree", stdin=b"")}
    tree = tree_of(hub, [(mode, name, ids[oid]) for mode, name, oid in rows])
    commit = run_git(hub.repository, "commit-tree", "-m", "odd", tree)
    base = root_commit(hub, {"a.py": b"1"})

    with pytest.raises(BadTreeError):
        hub.changes(base, commit)


def test_a_name_twice_in_one_folder_is_refused_when_it_is_listed(hub: Hub) -> None:
    row = ("100644", b"a", hub.write_blob(b"x"))
    commit = run_git(hub.repository, "commit-tree", "-m", "odd", tree_of(hub, [row, row]))

    with pytest.raises(BadTreeError):
        hub.list_tree(commit)


def test_a_list_that_is_made_from_a_known_one_is_the_same_as_a_fresh_one(hub: Hub) -> None:
    base = root_commit(hub, {f"{folder}/{i}.py": b"x" for folder in "abc" for i in range(9)})
    result = hub.commit(
        base,
        {
            "a/1.py": None,
            "a/2.py": NewFile(EXECUTABLE_MODE, b"longer"),
            "b/new.py": NewFile(FILE_MODE, b"n"),
            "c": NewFile(FILE_MODE, b"no folder now"),
            **{f"c/{i}.py": None for i in range(9)},
        },
        message="m",
    )
    hub.list_tree(base)

    patched = hub.list_tree(result)

    with Hub.open(hub.repository) as fresh:
        assert list(patched.items()) == list(fresh.list_tree(result).items())


def test_a_ref_moves_only_from_where_it_is_said_to_stand(hub: Hub) -> None:
    base = root_commit(hub, {"a.py": b"1"})
    result = change(hub, base, a_py="2")
    ref = "refs/rolecall/t/head"

    steps = [
        hub.set_ref(ref, base, None),
        hub.set_ref(ref, result, None),
        hub.set_ref(ref, result, result),
        hub.set_ref(ref, result, base),
        hub.set_ref(ref, None, base),
        hub.set_ref(ref, None, result),
        hub.set_ref(ref, None, None),
    ]

    assert steps == [True, False, False, True, False, True, True]
    assert hub.refs("refs/rolecall/") == {}
    with pytest.raises(GitError):
        hub.set_ref(ref, "1" * 40, None)


def test_of_many_who_move_a_ref_at_once_one_wins(hub: Hub) -> None:
    base = root_commit(hub, {"a.py": b"1"})
    results = [change(hub, base, a_py=f"new {i}") for i in range(8)]
    hub.set_ref("refs/rolecall/t/head", base, None)

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda new: hub.set_ref("refs/rolecall/t/head", new, base), results))

    assert sum(won) == 1
    assert hub.refs("refs/rolecall/t/") == {"refs/rolecall/t/head": results[won.index(True)]}


def test_publish_takes_blobs_and_moves_what_was_there(hub: Hub) -> None:
    base = root_commit(hub, {"a.py": b"1"})
    blob = hub.write_blob(b"large", ref="refs/rolecall/t/blobs/1")

    hub.publish("refs/rolecall/t/s/1", base)
    hub.publish("refs/rolecall/t/s/1", blob)

    assert hub.refs("refs/rolecall/t/s") == {"refs/rolecall/t/s/1": blob}
    assert hub.read(blob) == b"large"


_WRITER = """
import sys
from pathlib import Path
from workspace.entries import FILE_MODE, NewFile
from workspace.hub import Hub
path, base, who = sys.argv[1:]
with Hub.open(Path(path)) as hub:
    for i in range(6):
        size = 5 if i % 2 else 60
        files = {f"{who}/{n}.py": NewFile(FILE_MODE, f"{who} {i} {n}".encode()) for n in range(size)}
        result = hub.commit(base, files, message=f"{who} {i}")
        hub.publish(f"refs/rolecall/t/{who}-{i}/1", result)
        assert len(hub.list_tree(result)) == size + 1
"""


def test_several_processes_write_one_hub_at_once_and_each_reads_the_others(hub: Hub) -> None:
    base = root_commit(hub, {"a.py": b"1"})
    hub.list_tree(base)  # our own helper is running before the others write

    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(hub.repository), base, who], stderr=subprocess.PIPE
        )
        for who in ("p", "q", "r")
    ]
    said = [writer.communicate(timeout=50)[1] for writer in writers]

    assert said == [b"", b"", b""]
    refs = hub.refs("refs/rolecall/t/")
    assert len(refs) == 18
    assert {len(hub.list_tree(commit)) for commit in refs.values()} == {6, 61}


def test_small_results_do_not_leave_a_pack_each(hub: Hub) -> None:
    base = root_commit(hub, {"a.py": b"1"})

    for i in range(10):
        change(hub, base, a_py=str(i))

    assert list((hub.repository / "objects" / "pack").glob("*.pack")) == []


def test_an_unreferenced_result_outlives_a_push_into_the_hub(hub: Hub, tmp_path: Path) -> None:
    base = root_commit(hub, {"a.py": b"1"})
    result = change(hub, base, a_py="2")
    hub.publish("refs/rolecall/t/base", base)
    run_git(tmp_path, "clone", "--quiet", "--bare", str(hub.repository), "other.git")
    other = tmp_path / "other.git"
    run_git(other, "config", "gc.auto", "1")
    run_git(other, "fetch", "--quiet", str(hub.repository), base)

    run_git(other, "push", "--quiet", str(hub.repository), f"{base}:refs/heads/pushed")

    assert hub.head_tree(result)
    assert hub.read(hub.list_tree(result)["a.py"].oid) == b"2"


def test_a_helper_that_was_killed_is_started_again(hub: Hub) -> None:
    base = root_commit(hub, {"a.py": b"1"})
    hub.list_tree(base)

    for batch in (hub.objects._contents, hub.objects._headers):
        assert batch._process is not None
        batch._process.kill()
        batch._process.wait()

    assert hub.read(hub.list_tree(change(hub, base, a_py="2"))["a.py"].oid) == b"2"


def test_what_is_nowhere_is_said_by_its_id(hub: Hub) -> None:
    with pytest.raises(MissingObjectError, match="1111"):
        hub.list_tree("1" * 40)


def test_what_is_no_hub_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no hub at"):
        Hub.open(tmp_path / "nothing")
    run_git(tmp_path, "init", "--quiet", "work")
    save(tmp_path / "work", {"a": "1"})

    with pytest.raises(SettingsError, match="no"):
        Hub.open(tmp_path / "work")


def test_creating_a_hub_twice_keeps_what_is_in_it(tmp_path: Path) -> None:
    with Hub.create(tmp_path / "hub") as first:
        base = root_commit(first, {"a.py": b"1"})

    with Hub.create(tmp_path / "hub") as second:
        assert files_at(second, base) == {"a.py": b"1"}


def test_a_change_travels_in_a_handoff_with_its_counts() -> None:
    told = PathChange(
        "a.py", ChangeKind.MODIFIED, FILE_MODE, FILE_MODE, "1", "2", added=3, removed=1
    ).as_file_change()

    assert (told.path, told.change, told.added, told.removed) == ("a.py", ChangeKind.MODIFIED, 3, 1)

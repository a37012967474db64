"""Result commits that a worker may not hand in, made by hand as a hostile worker would."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.scope import Reach, Scope, Shard
from tests.unit.workspace_repos import change, root_commit, run_git, tree_of
from workspace.commit_check import check_result
from workspace.entries import EXECUTABLE_MODE, FILE_MODE, LINK_MODE, NewFile
from workspace.git import quote_path
from workspace.hub import Hub

WHO = b"Rolecall <rolecall@localhost> 1700000500 +0100"
EVERYTHING = Reach()
BASE: dict[str, bytes | NewFile] = {
    "src/a.py": b"a\n",
    "src/b.py": b"b\n",
    "run.sh": NewFile(EXECUTABLE_MODE, b"#!/bin/sh\n"),
    "link": NewFile(LINK_MODE, b"src/a.py"),
    "poetry.lock": b"lock\n",
    "pyproject.toml": b"[project]\n",
    ".github/workflows/ci.yml": b"on: push\n",
    ".gitattributes": b"*.py text\n",
}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub.create(tmp_path / "hub.git") as hub:
        yield hub


@pytest.fixture
def base(hub: Hub) -> str:
    return root_commit(hub, BASE)


def forge(hub: Hub, base: str, *lines: bytes, who: bytes = WHO, parents: bytes | None = None) -> str:
    """A commit written with plain fast-import, which checks nothing."""
    head = b"from " + base.encode() + b"\n" if parents is None else parents
    stream = b"feature done\ncommit refs/forged\nmark :1\nauthor %s\ncommitter %s\ndata 1\nm\n" % (who, who)
    stream += head + b"".join(lines) + b"reset refs/forged\n\nget-mark :1\ndone\n"
    return run_git(hub.repository, "fast-import", "--quiet", "--force", stdin=stream)


def put(path: bytes, data: bytes = b"x\n", mode: bytes = b"100644") -> bytes:
    return b"M %s inline %s\ndata %d\n%s\n" % (mode, quote_path(path), len(data), data)


def gates(
    hub: Hub, base: str, result: str, *allow: str, reach: Reach = EVERYTHING
) -> list[tuple[str, str | None]]:
    return [(finding.gate, finding.path) for finding in check_result(hub, base, result, reach, allow)]


def test_an_honest_result_has_no_findings(hub: Hub, base: str) -> None:
    result = hub.commit(
        base, {"src/a.py": NewFile(FILE_MODE, b"A\n"), "src/new.py": NewFile(FILE_MODE, b"n\n")}, message="m"
    )

    assert check_result(hub, base, result, EVERYTHING, ()) == ()


def test_a_file_that_existed_with_an_odd_name_may_be_edited(hub: Hub) -> None:
    odd = dict.fromkeys(("back\\slash.py", "new\nline", "sp ace.", "a:b", "aux.c"), b"x\n")
    base = root_commit(hub, odd)

    result = hub.commit(base, {name: NewFile(FILE_MODE, b"y\n") for name in odd}, message="m")

    assert check_result(hub, base, result, EVERYTHING, ()) == ()


@pytest.mark.parametrize(
    "path",
    [
        b".git/config",
        b".git",
        b"sub/.git/hooks/post-checkout",
        b".GIT/config",
        b".GiT",
        b"git~1",
        b"sub/GIT~1/config",
        b".git ",
        b".git.",
        b".git . ./config",
        b".git::$INDEX_ALLOCATION/config",
        ".g\u200cit/config".encode(),
        "\ufeff.git/config".encode(),
        b".git\\config",
        b"sub\\.git\\config",
        b"../evil",
        b"src/../../evil",
        b"./a",
        b"src/..\\..\\evil",
        b".. /x",
        b"..::$DATA/x",
        b"n" * 300,
        b"/".join([b"deep" * 50] * 21),
    ],
)
def test_a_path_that_escapes_or_becomes_git_is_found(hub: Hub, base: str, path: bytes) -> None:
    # mktree and update-index refuse some of these names; fast-import and hash-object do not.
    blob = hub.write_blob(b"x\n")
    *folders, name = path.split(b"/")
    tree = tree_of(hub, [("100644", name, blob)])
    for folder in reversed(folders):
        tree = tree_of(hub, [("040000", folder, tree)])
    result = _commit_of_tree(hub, base, tree)

    found = gates(
        hub, base, result, "deletions", "links", "ci-files", "build-files", "lock-files", "git-files"
    )

    assert ("path", path.decode("utf-8", "surrogateescape")) in found


def test_fast_import_takes_dot_git_and_dot_dot_and_we_do_not(hub: Hub, base: str) -> None:
    result = forge(hub, base, put(b".git/config"), put(b"../evil"))

    assert gates(hub, base, result) == [("path", "../evil"), ("path", ".git/config")]


def test_a_new_name_with_a_backslash_is_found(hub: Hub, base: str) -> None:
    assert gates(hub, base, forge(hub, base, put(b"src\\new.py"))) == [("path", "src\\new.py")]


@pytest.mark.parametrize(
    "rows",
    [
        [("100644", b"a", "BLOB"), ("100644", b"a", "OTHER")],
        [("100644", b"b", "BLOB"), ("100644", b"a", "BLOB")],
        [("100644", b"x/../../evil", "BLOB")],
        [("100644", b"", "BLOB")],
    ],
)
def test_a_tree_that_hides_rows_from_gits_own_diff_is_found(
    hub: Hub, base: str, rows: list[tuple[str, bytes, str]]
) -> None:
    ids = {"BLOB": hub.write_blob(b"x\n"), "OTHER": hub.write_blob(b"y\n")}
    tree = tree_of(hub, [(mode, name, ids[oid]) for mode, name, oid in rows])

    assert gates(hub, base, _commit_of_tree(hub, base, tree)) == [("objects", None)]


@pytest.mark.parametrize("mode", ["100600", "100777", "000000", "140000", "777777"])
def test_a_mode_that_git_does_not_know_is_found(hub: Hub, base: str, mode: str) -> None:
    rows = [
        (entry_mode, name.encode(), oid)
        for entry_mode, name, oid in (
            (line.split()[0], line.split("\t")[1], line.split()[2])
            for line in run_git(hub.repository, "ls-tree", base).splitlines()
        )
    ]
    tree = tree_of(hub, sorted([*rows, (mode, b"zzz", hub.write_blob(b"x"))], key=lambda row: row[1]))

    assert ("path", "zzz") in gates(hub, base, _commit_of_tree(hub, base, tree))


def test_content_that_is_not_in_the_hub_is_found(hub: Hub, base: str) -> None:
    tree = tree_of(hub, [("100644", b"a.py", "1" * 40)])

    assert ("objects", "a.py") in gates(hub, base, _commit_of_tree(hub, base, tree), "deletions")


def test_a_result_that_is_not_in_the_hub_is_found(hub: Hub, base: str) -> None:
    assert gates(hub, base, "1" * 40) == [("objects", None)]


def test_a_commit_that_does_not_stand_on_its_base_is_found(hub: Hub, base: str) -> None:
    other = change(hub, base, x_py="other")
    on_other = change(hub, other, y_py="y")
    merge = forge(hub, base, put(b"src/new.py"), parents=f"from {base}\nmerge {other}\n".encode())
    rootless = forge(hub, base, put(b"src/a.py", b"a\n"), parents=b"")

    assert ("commit", None) in gates(hub, base, on_other)
    assert set(gates(hub, base, merge)) == {("commit", None)}
    assert ("commit", None) in gates(hub, base, rootless, "deletions", *_ALL)
    assert ("commit", None) in gates(hub, base, base)


@pytest.mark.parametrize(
    "who",
    [
        b"Mallory <m@example.org> 1700000500 +0100",
        b"Rolecall <rolecall@localhost> 1700000501 +0100",
        b"Rolecall <rolecall@localhost> 1700000500 +0000",
    ],
)
def test_another_author_or_date_is_found(hub: Hub, base: str, who: bytes) -> None:
    assert gates(hub, base, forge(hub, base, put(b"src/new.py"), who=who)) == [("commit", None)]


def test_an_extra_header_is_found(hub: Hub, base: str) -> None:
    honest = change(hub, base, x_py="x")
    content = run_git(hub.repository, "cat-file", "commit", honest) + "\n"
    signed = content.replace("\n\n", "\ngpgsig -----BEGIN\n -----END\n\n", 1)
    result = run_git(hub.repository, "hash-object", "-t", "commit", "-w", "--stdin", stdin=signed.encode())

    assert gates(hub, base, result) == [("commit", None)]


def test_the_same_files_in_another_commit_are_no_result(hub: Hub, base: str) -> None:
    assert gates(hub, base, forge(hub, base)) == [("commit", None)]


def test_a_change_outside_scope_or_shard_is_found(hub: Hub, base: str) -> None:
    result = hub.commit(
        base, {path: NewFile(FILE_MODE, b"X\n") for path in ("src/a.py", "src/b.py", "other.py")}, message="m"
    )
    reach = Reach(scopes=(Scope(include=("src/**",)),), shard=Shard(start="src/b", stop=None))

    assert gates(hub, base, result, reach=reach) == [("scope", "other.py"), ("scope", "src/a.py")]


@pytest.mark.parametrize(
    ("lines", "effect", "path"),
    [
        ([b"D src/a.py\n"], "deletions", "src/a.py"),
        ([put(b"poetry.lock")], "lock-files", "poetry.lock"),
        ([put(b"web/package-lock.json")], "lock-files", "web/package-lock.json"),
        ([put(b"pyproject.toml")], "build-files", "pyproject.toml"),
        ([put(b"Makefile")], "build-files", "Makefile"),
        ([put(b".github/workflows/ci.yml")], "ci-files", ".github/workflows/ci.yml"),
        ([put(b".gitlab-ci.yml")], "ci-files", ".gitlab-ci.yml"),
        ([put(b"new-link", b"src/a.py", b"120000")], "links", "new-link"),
        ([put(b"link", b"src/b.py", b"120000")], "links", "link"),
        ([put(b"run.sh", b"#!/bin/sh\n", b"100644")], "modes", "run.sh"),
        ([put(b"src/a.py", b"a\n", b"100755")], "modes", "src/a.py"),
        ([put(b".gitattributes")], "git-files", ".gitattributes"),
        ([put(b"sub/.gitmodules")], "git-files", "sub/.gitmodules"),
        ([put(b".GITMODULES")], "git-files", ".GITMODULES"),
        ([put(b"gitmod~1")], "git-files", "gitmod~1"),
        ([b"M 160000 " + b"1" * 40 + b" sub\n"], "submodules", "sub"),
    ],
)
def test_an_effect_needs_its_grant(hub: Hub, base: str, lines: list[bytes], effect: str, path: str) -> None:
    result = forge(hub, base, *lines)

    assert gates(hub, base, result) == [("effects", path)]
    assert gates(hub, base, result, effect) == []


def test_a_link_that_becomes_a_file_needs_both_grants(hub: Hub, base: str) -> None:
    result = forge(hub, base, put(b"link", b"a\n"))

    assert gates(hub, base, result) == [("effects", "link"), ("effects", "link")]
    assert gates(hub, base, result, "links", "modes") == []


@pytest.mark.parametrize(
    "target",
    [b"/etc/passwd", b"../outside", b"src/../../outside", b".git/config", b"src/.GIT/x", b"C:\\x", b""],
)
def test_a_granted_link_still_may_not_point_out_of_the_tree(hub: Hub, base: str, target: bytes) -> None:
    result = forge(hub, base, put(b"evil", target, b"120000"))

    assert gates(hub, base, result, "links") == [("links", "evil")]


def test_a_granted_link_within_the_tree_may_climb(hub: Hub, base: str) -> None:
    assert gates(hub, base, forge(hub, base, put(b"src/up", b"../run.sh", b"120000")), "links") == []


def test_a_flood_of_faults_is_cut_short(hub: Hub, base: str) -> None:
    result = forge(hub, base, *(put(b".git/%d" % i) for i in range(200)))

    assert len(check_result(hub, base, result, EVERYTHING, ())) == 50


_ALL = ("links", "modes", "lock-files", "build-files", "ci-files", "git-files")


def _commit_of_tree(hub: Hub, base: str, tree: str) -> str:
    who = WHO.decode()
    content = f"tree {tree}\nparent {base}\nauthor {who}\ncommitter {who}\n\nm\n"
    return run_git(hub.repository, "hash-object", "-t", "commit", "-w", "--stdin", stdin=content.encode())

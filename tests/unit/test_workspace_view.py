"""What an engine sees of a snapshot, from the hub and from a dict alike."""

from pathlib import Path

from engines.rewrite import PatternRewrite
from schemas.scope import Reach, Scope
from tests.unit.engine_cases import pattern
from tests.unit.workspace_repos import root_commit
from workspace.entries import EXECUTABLE_MODE, LINK_MODE, NewFile
from workspace.hub import Hub
from workspace.view import DictView, HubView

FILES = {"a.py": b"foo(1)\n", "b/c.py": b"foo(2)\n", "b/d.txt": b"foo"}


def test_both_views_show_the_same(tmp_path: Path) -> None:
    reach = Reach(scopes=(Scope(exclude=("b/**",)),))
    with Hub.create(tmp_path / "hub.git") as hub:
        commit = root_commit(hub, {**FILES, "link": NewFile(LINK_MODE, b"a.py")})
        from_hub = HubView(hub, commit, reach)
        from_dict = DictView(FILES | {"link": b"a.py"}, modes={"link": LINK_MODE}, reach=reach)

        for view in (from_hub, from_dict):
            assert list(view.paths()) == ["a.py"]
            assert list(view.all_paths()) == ["a.py", "b/c.py", "b/d.txt", "link"]
            assert view.read("b/c.py") == b"foo(2)\n"
            assert list(view.read_many(["b/d.txt", "a.py"])) == [("b/d.txt", b"foo"), ("a.py", b"foo(1)\n")]
        assert from_hub.entry("a.py") == from_dict.entry("a.py")


def test_what_changed_since_an_earlier_commit_is_known(tmp_path: Path) -> None:
    with Hub.create(tmp_path / "hub.git") as hub:
        before = root_commit(hub, FILES)
        changes = {
            "a.py": NewFile(EXECUTABLE_MODE, b"foo(1)\n"),
            "new.py": NewFile(EXECUTABLE_MODE, b""),
            "b/d.txt": None,
        }
        commit = hub.commit(before, changes, message="m")

        assert HubView(hub, commit).changed_since(before) == {"a.py", "new.py"}
        assert HubView(hub, commit).changed_since(commit) == frozenset()


def test_an_engine_works_on_blobs_without_a_checkout(tmp_path: Path) -> None:
    with Hub.create(tmp_path / "hub.git") as hub:
        commit = root_commit(hub, {**FILES, "run.py": NewFile(EXECUTABLE_MODE, b"foo(3)\n")})

        result = PatternRewrite().apply(pattern("foo($A)", "bar($A)"), HubView(hub, commit))

    assert dict(result.changes) == {
        "a.py": NewFile("100644", b"bar(1)\n"),
        "b/c.py": NewFile("100644", b"bar(2)\n"),
        "run.py": NewFile(EXECUTABLE_MODE, b"bar(3)\n"),
    }

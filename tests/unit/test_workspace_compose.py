"""Composing results: paths side by side, never a textual merge, one outcome for every order."""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest

from tests.unit.workspace_repos import change, files_at, root_commit, run_git
from workspace.entries import EXECUTABLE_MODE, FILE_MODE, NewFile
from workspace.hub import Composed, Conflict, Hub

BASE: dict[str, bytes | NewFile] = {
    "a.py": b"a\n",
    "b.py": b"b\n",
    "c.py": b"c\n",
    "folder/x.py": b"x\n",
    "run": NewFile(EXECUTABLE_MODE, b"r\n"),
}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub.create(tmp_path / "hub.git") as hub:
        yield hub


@pytest.fixture
def base(hub: Hub) -> str:
    return root_commit(hub, BASE)


def test_results_on_disjoint_paths_compose_to_one_commit_in_any_order(hub: Hub, base: str) -> None:
    results = [
        (base, change(hub, base, a_py="A")),
        (base, change(hub, base, b_py=None)),
        (base, hub.commit(base, {"folder/new.py": NewFile(FILE_MODE, b"N")}, message="m")),
    ]

    outcomes = {hub.compose(base, order, message="all") for order in permutations(results)}

    (composed,) = outcomes
    assert isinstance(composed, Composed)
    assert composed.paths == ("a.py", "b.py", "folder/new.py")
    assert files_at(hub, composed.commit) == {
        "a.py": b"A",
        "c.py": b"c\n",
        "folder/new.py": b"N",
        "folder/x.py": b"x\n",
        "run": b"r\n",
    }
    assert hub.list_tree(composed.commit)["run"].mode == EXECUTABLE_MODE
    shown = run_git(hub.repository, "show", "-s", "--date=raw", "--format=%an %cd %P %s", composed.commit)
    assert shown == f"Rolecall 1700000500 +0100 {base} all"


def test_a_result_made_on_an_older_base_lands_on_a_head_that_moved_elsewhere(hub: Hub, base: str) -> None:
    head = change(hub, base, b_py="B")

    composed = hub.compose(head, [(base, change(hub, base, a_py="A"))], message="m")

    assert isinstance(composed, Composed)
    assert composed.paths == ("a.py",)
    files = files_at(hub, composed.commit)
    assert (files["a.py"], files["b.py"]) == (b"A", b"B")


def test_a_path_that_two_results_change_is_a_conflict_even_where_text_would_merge(
    hub: Hub, base: str
) -> None:
    # One side drops `import os`, the other uses it elsewhere: git merges that without a word.
    lines = "import os\n" + "\n" * 30 + "x = 1\n"
    start = change(hub, base, a_py=lines)
    drops = change(hub, start, a_py=lines.replace("import os", ""))
    uses = change(hub, start, a_py=lines.replace("x = 1", "x = os.sep"))
    innocent = change(hub, start, b_py="B")

    conflict = hub.compose(start, [(start, drops), (start, innocent), (start, uses)], message="m")

    assert conflict == Conflict(("a.py",), tuple(sorted([drops, uses])))


def test_a_path_that_the_head_changed_since_the_base_is_a_conflict(hub: Hub, base: str) -> None:
    head = change(hub, base, a_py="head")
    result = change(hub, base, a_py="result", b_py="B")

    assert hub.compose(head, [(base, result)], message="m") == Conflict(("a.py",), (result,))


def test_a_mode_that_the_head_changed_since_the_base_is_a_conflict_too(hub: Hub, base: str) -> None:
    head = hub.commit(base, {"a.py": NewFile(EXECUTABLE_MODE, b"a\n")}, message="m")
    result = change(hub, base, a_py="result")

    assert hub.compose(head, [(base, result)], message="m") == Conflict(("a.py",), (result,))


def test_a_file_where_another_result_makes_a_folder_is_a_conflict(hub: Hub, base: str) -> None:
    file = hub.commit(base, {"new": NewFile(FILE_MODE, b"1")}, message="m")
    folder = hub.commit(base, {"new/deep/x": NewFile(FILE_MODE, b"2")}, message="m")

    conflict = hub.compose(base, [(base, file), (base, folder)], message="m")

    assert isinstance(conflict, Conflict)
    assert set(conflict.results) == {file, folder}
    assert "new" in conflict.paths


def test_a_file_where_the_head_has_a_folder_by_now_is_a_conflict(hub: Hub, base: str) -> None:
    head = hub.commit(base, {"new/x": NewFile(FILE_MODE, b"1")}, message="m")
    file = hub.commit(base, {"new": NewFile(FILE_MODE, b"2")}, message="m")
    below = hub.commit(base, {"a.py": None, "a.py/x": NewFile(FILE_MODE, b"3")}, message="m")

    assert hub.compose(head, [(base, file)], message="m") == Conflict(("new",), (file,))
    assert isinstance(hub.compose(change(hub, base, a_py="moved"), [(base, below)], message="m"), Conflict)


def test_results_that_change_nothing_leave_the_head_as_it_is(hub: Hub, base: str) -> None:
    assert hub.compose(base, [], message="m") == Composed(base, ())
    assert hub.compose(base, [(base, base)], message="m") == Composed(base, ())


def test_the_same_result_given_twice_counts_once(hub: Hub, base: str) -> None:
    result = change(hub, base, a_py="A")

    once = hub.compose(base, [(base, result)], message="m")

    assert hub.compose(base, [(base, result), (base, result)], message="m") == once
    assert isinstance(once, Composed)


def test_a_composed_tree_equals_the_tree_of_the_rules_run_one_after_the_other(hub: Hub, base: str) -> None:
    first = change(hub, base, a_py="A")
    then = change(hub, first, b_py="B")

    composed = hub.compose(base, [(base, change(hub, base, b_py="B")), (base, first)], message="m")

    assert isinstance(composed, Composed)
    assert hub.head_tree(composed.commit) == hub.head_tree(then)

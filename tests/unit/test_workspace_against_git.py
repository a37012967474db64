"""Our own walks and writer against git's answers, on many random trees."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from schemas.words import ChangeKind
from tests.unit.workspace_repos import root_commit, run_git
from workspace.entries import EXECUTABLE_MODE, FILE_MODE, LINK_MODE, NewFile, to_bytes
from workspace.hub import Composed, Hub

# Names that sort differently with and without a slash behind them, and names that need quoting.
NAMES = ("a", "a.b", "a-b", "a0", "A", "b", 'q"uo', "new\nline", "sp ace", "\udce4", "ä", "-x", "back\\slash")
MODES = (FILE_MODE, FILE_MODE, EXECUTABLE_MODE, LINK_MODE)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub.create(tmp_path / "hub.git") as hub:
        yield hub


def random_files(random: Random) -> dict[str, NewFile]:
    files: dict[str, NewFile] = {}
    for _ in range(random.randint(1, 25)):
        path = "/".join(random.choice(NAMES) for _ in range(random.randint(1, 4)))
        around = {path[:at] for at, letter in enumerate(path) if letter == "/"}
        if not around & files.keys() and not any(other.startswith(f"{path}/") for other in files):
            files[path] = NewFile(random.choice(MODES), random.choice((b"", b"1\n", b"1\n2\n", b"\0", b"x")))
    return files


def turned_into(base: dict[str, NewFile], result: dict[str, NewFile]) -> dict[str, NewFile | None]:
    return {**dict.fromkeys(base), **result}


@pytest.mark.parametrize("seed", range(12))
def test_changes_and_lists_are_those_that_git_tells(hub: Hub, seed: int) -> None:
    random = Random(seed)
    before, after = random_files(random), random_files(random)
    base = root_commit(hub, before)

    result = hub.commit(base, turned_into(before, after), message="m")

    listed = hub.list_tree(result)
    assert {path: entry.mode for path, entry in listed.items()} == {p: f.mode for p, f in after.items()}
    assert list(map(to_bytes, listed)) == sorted(map(to_bytes, after))
    raw = run_git(hub.repository, "diff-tree", "-r", "-z", "--no-renames", base, result)
    parts = [part for part in raw.split("\0") if part]
    told = {path: head.split()[-1] for head, path in zip(parts[::2], parts[1::2], strict=True)}
    ours = {change.path: change.change for change in hub.changes(base, result)}
    letters = {
        ChangeKind.ADDED: "A",
        ChangeKind.DELETED: "D",
        ChangeKind.MODIFIED: "MT",
        ChangeKind.MODE: "MT",
    }
    assert ours.keys() == told.keys()
    assert all(told[path] in letters[kind] for path, kind in ours.items())
    run_git(hub.repository, "fsck", "--strict", result)


@pytest.mark.parametrize("seed", range(12))
def test_parts_of_a_change_compose_to_the_whole_of_it(hub: Hub, seed: int) -> None:
    random = Random(seed)
    before, after = random_files(random), random_files(random)
    base = root_commit(hub, before)
    kept = {path: file for path, file in after.items() if path in before}
    added = {path: file for path, file in after.items() if _fits(path, before) and _fits(path, kept)}
    whole = hub.commit(base, {**kept, **added}, message="m")
    parts = [
        (base, hub.commit(base, dict(part), message="m"))
        for part in (list(kept.items()), list(added.items())[::2], list(added.items())[1::2])
    ]

    for _ in range(3):
        random.shuffle(parts)
        composed = hub.compose(base, parts, message="m")

        assert isinstance(composed, Composed)
        assert hub.head_tree(composed.commit) == hub.head_tree(whole)


def _fits(path: str, files: dict[str, NewFile]) -> bool:
    return not any(o == path or o.startswith(f"{path}/") or path.startswith(f"{o}/") for o in files)

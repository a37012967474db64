"""The cases of `make cases`: their data is sound, and the judge sees what is equal, alike, different and outside."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cases.case import DATA, Case, chosen_cases, read_case
from benchmarks.cases.judging import Judgement, judge
from benchmarks.cases.scratch import find_repository, has_commits, run_git, scratch_clone
from engines.trial import try_recipe
from rolecall.client.recipes import shipped_recipes
from schemas.contracts import ContractRegistry
from schemas.recipe_file import parse_recipe

FILES = sorted(DATA.glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_case_has_a_recipe_that_can_run(file: Path) -> None:
    case = read_case(file)

    assert case.case == file.stem
    if isinstance(case.recipe, str):
        assert case.recipe in shipped_recipes()
    else:
        data = json.dumps(case.recipe).encode()
        try_recipe(parse_recipe(data, origin=file.name, contracts=ContractRegistry.builtin()))


def test_a_case_is_chosen_by_the_beginning_of_its_name() -> None:
    assert [case.case for case in chosen_cases(["M01"])] == ["m01-kombu-utcnow"]
    with pytest.raises(SystemExit, match="no case 'x99'; there are e01"):
        chosen_cases(["x99"])


@pytest.mark.parametrize("name", ["owner/name", "owner+name", "name", "name.git"])
def test_a_repository_is_found_under_its_usual_names(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / name / "HEAD").touch()

    assert find_repository(tmp_path, case()) == tmp_path / name


def test_paths_are_judged_by_what_the_real_commit_made_of_them(tmp_path: Path) -> None:
    world = Written(tmp_path)
    before = dict.fromkeys(("equal.py", "alike.py", "differs.py", "missing.py", "extra.py"), "old = 1\n")
    parent = world.commit(before)
    real = world.commit(dict.fromkeys(("equal.py", "alike.py", "differs.py", "missing.py"), "new = 1\n"))
    ours = world.commit(
        {
            "equal.py": "new = 1\n",
            "alike.py": "new  = 1\n",
            "differs.py": "new = 2\n",
            "extra.py": "new = 1\n",
        },
        onto=parent,
    )

    made = judge(case(parent=parent, commit=real), world.path, ours)

    assert (made.equal, made.alike, made.differ) == (("equal.py",), ("alike.py",), ("differs.py",))
    assert (made.missing, made.extra, made.outside) == (("missing.py",), ("extra.py",), ("extra.py",))
    assert [(one.before, one.after, one.real) for one in made.counts] == [(5, 1, 1)]
    assert not made.is_passed


def test_a_judge_passes_where_enough_is_gone_and_all_else_is_allowed(tmp_path: Path) -> None:
    world = Written(tmp_path)
    parent = world.commit({"a.py": "old\nold\n", "docs/a.md": "text\n"})
    real = world.commit({"a.py": "new\nold\n"})
    ours = world.commit({"a.py": "new\nold\n", "docs/a.md": "other\n"}, onto=parent)

    def judged(**given: Any) -> Judgement:
        return judge(case(parent=parent, commit=real, **given), world.path, ours)

    one_left = [{"grep": "old", "paths": ["*.py"], "at_most": 1}]
    assert judged(judge=one_left, may_touch=["docs/**"]).is_passed
    assert not judged(judge=one_left).is_passed
    assert not judged(may_touch=["docs/**"]).is_passed


def test_a_judge_that_had_nothing_to_do_does_not_pass(tmp_path: Path) -> None:
    world = Written(tmp_path)
    parent = world.commit({"a.py": "x\n"})
    real = world.commit({"a.py": "y\n"})

    assert not judge(case(parent=parent, commit=real), world.path, real).is_passed


def test_a_scratch_clone_stands_at_the_parent_and_has_the_real_commit(tmp_path: Path) -> None:
    world = Written(tmp_path / "source")
    parent = world.commit({"a.py": "old\n"})
    real = world.commit({"a.py": "new\n"})
    one = case(parent=parent, commit=real)
    assert has_commits(world.path, one)

    clone = scratch_clone(world.path, one, tmp_path / "scratch")
    (clone / "a.py").write_text("spoiled\n")
    again = scratch_clone(world.path, one, tmp_path / "scratch")

    assert again == clone
    assert (clone / "a.py").read_text() == "old\n"
    assert run_git(clone, "rev-parse", "HEAD").strip() == parent
    assert run_git(clone, "show", f"{real}:a.py") == "new\n"
    assert not has_commits(clone, case(parent=parent, commit="0" * 40))


def case(**given: Any) -> Case:
    full = {
        "case": "x", "goal": "new for old", "repository": "owner/name", "recipe": "x",
        "parent": "1" * 40, "commit": "2" * 40, "judge": [{"grep": "old"}],
    }  # fmt: skip
    return Case.model_validate(full | given)


class Written:
    """A repository that is written commit by commit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        self._git("init", "-q", "-b", "main")
        self._git("config", "user.name", "Test")
        self._git("config", "user.email", "test@localhost")

    def commit(self, files: dict[str, str], onto: str | None = None) -> str:
        if onto:
            self._git("checkout", "-q", onto)
        for name, text in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(text)
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "change")
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *words: str) -> str:
        command = ["git", "-C", str(self.path), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

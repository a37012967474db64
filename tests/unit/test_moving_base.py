"""What is done when the user's branch moved while the task ran."""

from pathlib import Path

import pytest

from rolecall.client.moving_base import moved_since, order_again
from rolecall.client.order import Order, Wishes, make_order
from schemas.contracts import ContractRegistry
from tests.unit.workspace_repos import new_repository, run_git, save
from workspace.source import Base, Source, open_source

RECIPE = "recipe: swap\nrules:\n  - text.replace: {find: one, replace: two}\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repo", {"a.py": "one = 1\n"})


def order(repository: Path, **wishes: object) -> Order:
    recipe = repository.parent / "swap.yaml"
    recipe.write_text(RECIPE)
    given = Wishes(recipe=str(recipe), repo=repository, allow_untested=True, **wishes)  # type: ignore[arg-type]
    return make_order(given, ContractRegistry.builtin())


def opened(repository: Path) -> tuple[Source, Base]:
    source = open_source(repository)
    return source, source.resolve()


def test_a_branch_that_stands_where_it_stood_did_not_move(repository: Path) -> None:
    source, base = opened(repository)

    assert moved_since(source, base) is None


def test_new_commits_are_counted(repository: Path) -> None:
    source, base = opened(repository)
    save(repository, {"b.py": "x = 1\n"})
    save(repository, {"c.py": "x = 1\n"})

    moved = moved_since(source, base)

    assert moved is not None
    assert (moved.new, moved.commits) == (run_git(repository, "rev-parse", "HEAD"), 2)
    assert moved.sentence().startswith("main is 2 commits further now (")


def test_a_branch_that_was_rewritten_moved_too(repository: Path) -> None:
    save(repository, {"b.py": "x = 1\n"})
    source, base = opened(repository)
    run_git(repository, "reset", "--hard", "-q", "HEAD~1")

    moved = moved_since(source, base)

    assert moved is not None
    assert "main is elsewhere now" in moved.sentence()


@pytest.mark.parametrize("ref", ["v1", "HEAD~1", "gone"])
def test_what_is_no_branch_does_not_move(repository: Path, ref: str) -> None:
    source, base = opened(repository)
    run_git(repository, "tag", "v1")
    save(repository, {"b.py": "x = 1\n"})

    assert moved_since(source, Base(base.commit, ref)) is None


def test_the_order_is_the_same_but_for_its_base_and_its_id(repository: Path) -> None:
    first = order(repository)
    source, base = first.source, Base(first.request.base, first.request.base_ref)
    save(repository, {"b.py": "one = 1\n"})
    moved = moved_since(source, base)
    assert moved is not None

    again = order_again(first, moved)

    assert again.task != first.task
    assert again.request == first.request.model_copy(
        update={"base": moved.new, "branch": f"rolecall/swap-{again.task[-8:]}", "follows": first.task}
    )


def test_a_branch_that_the_user_named_keeps_its_name(repository: Path) -> None:
    first = order(repository, branch="mine")
    save(repository, {"b.py": "one = 1\n"})
    moved = moved_since(first.source, Base(first.request.base, first.request.base_ref))
    assert moved is not None

    assert order_again(first, moved).request.branch == "mine"

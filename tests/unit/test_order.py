"""An order: everything that can be wrong is said before anything runs."""

from pathlib import Path

import pytest

from rolecall.client.order import Order, Wishes, make_order
from schemas.contracts import ContractDocument, ContractRegistry
from schemas.errors import ContractError, SettingsError
from tests.role_builders import contract
from tests.unit.workspace_repos import new_repository, run_git, save
from workspace.job import SandboxMode

RECIPE = """\
recipe: swap
rules:
  - id: swap
    text.replace: {find: one, replace: two}
"""
FILES = {
    "src/a.py": "one = 1\n",
    "tests/test_a.py": "import pytest\n\ndef test_a(): pass\n",
    "docs/x.md": "one\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repo", FILES)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "swap.yaml"
    path.write_text(RECIPE)
    return path


def order(repository: Path, recipe: Path | str, **wishes: object) -> Order:
    return make_order(Wishes(recipe=str(recipe), repo=repository, **wishes), ContractRegistry.builtin())  # type: ignore[arg-type]


def test_an_order_is_complete_and_names_what_it_found(repository: Path, recipe: Path) -> None:
    made = order(repository, recipe)

    request = made.request
    assert request.base == run_git(repository, "rev-parse", "HEAD")
    assert (request.base_ref, request.recipe_name, request.repository) == ("main", "swap", str(repository))
    assert request.branch == f"rolecall/swap-{made.task[-8:]}"
    assert request.test is not None
    assert request.test.command[1:] == ("-m", "pytest", "-q")
    assert (request.test.found_in, request.test.checkout) == ("tests/", str(repository))
    assert made.files_in_scope == 3


def test_a_dirty_tree_uses_head_and_names_what_it_leaves_out(repository: Path, recipe: Path) -> None:
    (repository / "src/a.py").write_text("changed = 1\n")
    (repository / "new.txt").write_text("new\n")

    assert order(repository, recipe).request.left_out == ("new.txt", "src/a.py")
    assert order(repository, recipe, base="main").request.left_out == ()


def test_the_options_for_scope_test_limits_and_effects_are_taken(repository: Path, recipe: Path) -> None:
    made = order(
        repository,
        recipe,
        include=("src/**",),
        exclude=("**/b.py",),
        test="make 'my tests'",
        test_timeout_s=5,
        allow=("deletions,lock-files", "deletions"),
        limits=("wall-time-s=60", "actions=7"),
        branch="mine/x",
    ).request

    assert (made.scope.include, made.scope.exclude) == (("src/**",), ("**/b.py",))
    assert made.test is not None
    assert (made.test.command, made.test.timeout_s, made.test.found_in) == (("make", "my tests"), 5, "option")
    assert made.allow == ("deletions", "lock-files")
    assert (made.limits.wall_time_s, made.limits.actions, made.branch) == (60, 7, "mine/x")


def test_a_contract_of_high_risk_can_be_allowed_by_its_name(repository: Path, recipe: Path) -> None:
    contracts = ContractRegistry.builtin()
    contracts.add(ContractDocument.model_validate(contract().model_dump() | {"risk": "high"}))
    wishes = Wishes(recipe=str(recipe), repo=repository, allow=(contract().name,))

    assert make_order(wishes, contracts).request.allow == (contract().name,)
    with pytest.raises(ContractError, match="neither an effect nor a contract of high risk"):
        make_order(wishes, ContractRegistry.builtin())


def test_the_recipes_own_test_command_goes_before_what_is_found(repository: Path, recipe: Path) -> None:
    recipe.write_text(RECIPE + "test: {command: [make, check], timeout_s: 9, env: {A: b}}\n")

    test = order(repository, recipe).request.test

    assert test is not None
    assert (test.command, test.timeout_s, test.env, test.found_in) == (
        ("make", "check"),
        9,
        {"A": "b"},
        "recipe",
    )


def test_a_repository_without_tests_needs_a_word_from_the_user(tmp_path: Path, recipe: Path) -> None:
    bare = new_repository(tmp_path / "untested", {"a.txt": "one\n"})

    with pytest.raises(ContractError, match=r"No tests were found.*--allow-untested"):
        order(bare, recipe)
    assert order(bare, recipe, allow_untested=True).request.test is None


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({"base": "nowhere"}, "has no commit 'nowhere'"),
        ({"branch": "a..b"}, "cannot be a branch's name"),
        ({"branch": "main"}, "in the way"),
        ({"allow": ("deletion",)}, "Did you mean 'deletions'"),
        ({"limits": ("action=3",)}, "Did you mean 'actions'"),
        ({"limits": ("actions=no",)}, "--limit actions=no"),
        ({"limits": ("actions=0",)}, "--limit actions=0"),
        ({"include": ("lib/**",)}, "No file of main .* is in scope"),
        ({"test": "  "}, "--test is empty"),
        ({"test": "a 'b"}, "cannot be split into words"),
    ],
)
def test_a_wrong_option_is_refused_with_what_was_meant(
    wishes: dict[str, object], said: str, repository: Path, recipe: Path
) -> None:
    with pytest.raises(ContractError, match=said):
        order(repository, recipe, **wishes)


@pytest.mark.parametrize("mode", list(SandboxMode))
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("pytset -q", r"--test: there is no program 'pytset' in the test environment; its PATH is /"),
        ("pythno3 -m pytest", r"Did you mean 'python3'\?"),
        ("/nowhere/to/be/found", r"there is no program '/nowhere/to/be/found' on this machine"),
        ("./run.sh -q", r"there is no file 'run.sh' in main \(.*Commit it first"),
        ("src/a.py", r"'src/a.py' is not executable in main .*sh src/a.py"),
    ],
)
def test_a_test_command_that_cannot_be_found_is_refused(
    command: str, said: str, mode: SandboxMode, repository: Path, recipe: Path
) -> None:
    (repository / "run.sh").write_text("not committed\n")

    with pytest.raises(ContractError, match=said):
        order(repository, recipe, test=command, sandbox=mode)
    # Testers on other machines have other programs.
    assert order(repository, recipe, test=command, sandbox=None).request.test is not None


@pytest.mark.parametrize("mode", list(SandboxMode))
def test_a_test_command_may_be_of_the_system_the_environment_or_the_repository(
    mode: SandboxMode, repository: Path, recipe: Path
) -> None:
    environment = repository / ".venv" / "bin"
    environment.mkdir(parents=True)
    for path in (repository / "check", environment / "python", environment / "own-tool"):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (repository / ".venv/pyvenv.cfg").touch()
    (repository / "linked").symlink_to("check")
    run_git(repository, "add", "check", "linked")
    run_git(repository, "commit", "--quiet", "-m", "check")

    for command in (
        "sh -c true",
        "own-tool",
        "./check",
        "linked/x",
        ".venv/bin/own-tool",
        f"{repository}/check",
    ):
        assert order(repository, recipe, test=command, sandbox=mode).request.test is not None, command


def test_a_recipes_test_command_is_looked_for_too(repository: Path, recipe: Path) -> None:
    recipe.write_text(RECIPE + "test: {command: [pytset]}\n")

    with pytest.raises(ContractError, match=r"The recipe's test: there is no program 'pytset'"):
        order(repository, recipe, sandbox=SandboxMode.BUBBLEWRAP)


def test_no_tests_means_that_nothing_is_run_and_needs_no_other_word(repository: Path, recipe: Path) -> None:
    recipe.write_text(RECIPE + "test: {command: [pytset]}\n")

    request = order(repository, recipe, no_tests=True, sandbox=SandboxMode.BUBBLEWRAP).request

    assert (request.test, request.no_tests, request.allow_untested) == (None, True, True)
    with pytest.raises(ContractError, match=r"--no-tests and --test contradict"):
        order(repository, recipe, no_tests=True, test="true")


def test_an_environment_that_is_none_is_refused(repository: Path, recipe: Path) -> None:
    with pytest.raises(SettingsError, match=r"no Python environment.*--env \.venv"):
        order(repository, recipe, env="nope")


def test_a_folder_that_is_no_repository_and_an_unborn_one_are_refused(tmp_path: Path, recipe: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "unborn").mkdir()
    run_git(tmp_path / "unborn", "init", "--quiet")

    with pytest.raises(ContractError, match=r"not in a git repository.*git init"):
        order(tmp_path / "plain", recipe)
    with pytest.raises(ContractError, match=r"no commit yet"):
        order(tmp_path / "unborn", recipe)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("- rewrite.pattren: {}", r"swap.yaml:3: .*Did you mean 'rewrite.pattern'"),
        ("- rewrite.pattern: {language: python, match: 'f(', replace: x}", "swap.yaml"),
        (
            "- rewrite.pattern: {language: python, match: f(), replace: g(), in: docs}",
            r"swap.yaml:3: .*in is an unknown key",
        ),
        (
            "- {text.replace: {find: a, replace: b}, examples: [{before: a, after: c, path: x.txt}]}",
            r"does not come out[\s\S]*\+b",
        ),
    ],
)
def test_a_recipe_that_cannot_work_is_refused_with_its_line(
    rules: str, said: str, repository: Path, recipe: Path
) -> None:
    recipe.write_text(f"recipe: swap\nrules:\n  {rules}\n")

    with pytest.raises(ContractError, match=said):
        order(repository, recipe)


def test_nothing_in_the_repository_changes_by_ordering(repository: Path, recipe: Path) -> None:
    save(repository, {"b.txt": "x\n"})
    before = _picture(repository)

    order(repository, recipe)

    assert _picture(repository) == before


def _picture(repository: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(repository.rglob("*")) if path.is_file()}

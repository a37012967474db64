"""Which tests an order runs: the command from the option, the recipe or the repository, its environment, and whether
the command is there at all."""

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import ContractError
from schemas.recipe import Recipe
from schemas.suggest import nearest
from schemas.task import TestCommand
from tester.discovery import find_test_command
from tester.environment import choose_environment
from workspace.hub import Hub
from workspace.job import SandboxMode
from workspace.sandbox import job_path
from workspace.source import Base, Source
from workspace.view import HubView

_OTHER = "Name another command, or with --env the environment that has it."


@dataclass(frozen=True, slots=True)
class TestsAsked:
    """What the user said about tests; None means not given. With `sandbox` the tests run on this machine."""

    __test__ = False  # not a test class

    command: str | None = None
    timeout_s: float | None = None
    environment: str | None = None
    virtual_env: str | None = None
    sandbox: SandboxMode | None = None
    may_be_none: bool = False


def wanted_tests(asked: TestsAsked, recipe: Recipe, source: Source, base: Base) -> TestCommand | None:
    """The tests of an order; None if there are none and that is allowed. Raises ContractError with what to do."""
    folder = source.work_tree or source.git_dir
    environment = choose_environment(
        folder, option=asked.environment, virtual_env=asked.virtual_env, which=shutil.which
    )
    command = _command(asked, recipe, source, base, python=environment.python if environment else "python")
    if command is None:
        if asked.may_be_none:
            return None
        raise ContractError(
            f"No tests were found in {folder}, and what is not tested does not land.",
            suggestion='Name the command with --test "…", or land untested with --allow-untested.',
        )
    changes: dict[str, object] = {
        "environment": str(environment.folder) if environment else None,
        "checkout": str(source.work_tree) if source.work_tree else None,
    }
    if asked.timeout_s is not None:
        changes["timeout_s"] = asked.timeout_s
    wanted = command.model_copy(update=changes)
    if asked.sandbox is not None:
        _check_found(wanted, source, base, asked.sandbox)
    return wanted


def reading(source: Source) -> Hub:
    """The user's repository as a place to read snapshots from; nothing is written there."""
    return Hub(str(source.git_dir), source.git_dir, source.object_format, None)


def _command(
    asked: TestsAsked, recipe: Recipe, source: Source, base: Base, *, python: str
) -> TestCommand | None:
    if asked.command is not None:
        try:
            words = shlex.split(asked.command)
        except ValueError as error:
            raise ContractError(f"--test {asked.command!r} cannot be split into words: {error}.") from error
        if not words:
            raise ContractError("--test is empty.", suggestion='For instance --test "python -m pytest -q".')
        env = dict(recipe.test.env) if recipe.test else {}
        return TestCommand(command=tuple(words), env=env, found_in="option")
    if recipe.test is not None:
        return recipe.test.as_command("recipe")
    with reading(source) as repository:
        return find_test_command(HubView(repository, base.commit), python=python)


def _check_found(test: TestCommand, source: Source, base: Base, mode: SandboxMode) -> None:
    """Raises ContractError if the command's program is nowhere where the tests will look for it."""
    name = test.command[0]
    whose = {"option": "--test", "recipe": "The recipe's test"}.get(
        test.found_in, f"The tests of {test.found_in}"
    )
    environment = Path(test.environment) if test.environment else None
    if "/" not in name:
        path = job_path(test.env, environment, mode)
        if shutil.which(name, path=path) is None:
            raise ContractError(
                f"{whose}: there is no program {name!r} in the test environment; its PATH is {path}.",
                suggestion=_meant(name, path),
            )
        return
    at = Path(os.path.normpath((source.work_tree or source.git_dir) / name))
    if environment is not None and at.is_relative_to(environment) and at.exists():
        return
    if source.work_tree is None or not at.is_relative_to(source.work_tree):
        if Path(name).is_absolute() and not at.is_file():
            raise ContractError(f"{whose}: there is no program {name!r} on this machine.", suggestion=_OTHER)
        return
    _check_committed(at.relative_to(source.work_tree), whose, source, base)


def _check_committed(path: Path, whose: str, source: Source, base: Base) -> None:
    where = f"in {base.ref} ({base.commit[:12]})"
    with reading(source) as repository:
        tree = HubView(repository, base.commit)
        entries = [tree.entry(one.as_posix()) for one in (path, *path.parents[:-1])]
    if all(entry is None for entry in entries):
        raise ContractError(
            f"{whose}: there is no file {str(path)!r} {where}.",
            suggestion="Commit it first, or name another command: tests see what is committed.",
        )
    if (found := entries[0]) is not None and found.is_file and not found.is_executable:
        raise ContractError(
            f"{whose}: {str(path)!r} is not executable {where}.",
            suggestion=f"Write `sh {path}` or `python {path}`, or commit it as executable.",
        )


def _meant(name: str, path: str) -> str:
    known: list[str] = []
    for folder in map(Path, path.split(":")):
        if folder.is_dir():
            known += [one.name for one in folder.iterdir()]
    hint = nearest(name, known)
    return f"Did you mean {hint!r}? {_OTHER}" if hint else _OTHER

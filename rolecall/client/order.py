"""An order: what the user wants, from options; checked in full before anything runs, and ready to be submitted."""

import getpass
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from rolecall.client.phrases import short
from rolecall.client.recipes import load_checked
from rolecall.client.wanted_tests import TestsAsked, reading, wanted_tests
from schemas.clock import new_id
from schemas.contracts import ContractRegistry
from schemas.errors import ContractError
from schemas.recipe import Recipe
from schemas.scope import Reach, Scope
from schemas.suggest import nearest
from schemas.task import Limits, TaskRequest
from schemas.words import Lane, Risk
from workspace.effects import Effect
from workspace.job import SandboxMode
from workspace.source import Source, open_source
from workspace.view import HubView


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options as the user gave them; empty or None means not given.

    `sandbox` is how tests are shut in, if they run on this machine; None if they may run elsewhere.
    """

    recipe: str
    repo: Path
    base: str | None = None
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    test: str | None = None
    test_timeout_s: float | None = None
    env: str | None = None
    allow: Sequence[str] = ()
    allow_untested: bool = False
    no_tests: bool = False
    limits: Sequence[str] = ()
    branch: str | None = None
    virtual_env: str | None = None
    sandbox: SandboxMode | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """A checked request with the id it will have, and the repository it is about."""

    task: str
    request: TaskRequest
    recipe: Recipe
    source: Source = field(repr=False)

    @property
    def files_in_scope(self) -> int:
        """How many files the order may look at."""
        with reading(self.source) as repository:
            reach = Reach(scopes=(self.recipe.scope, self.request.scope))
            return len(HubView(repository, self.request.base, reach).paths())


def make_order(wishes: Wishes, contracts: ContractRegistry) -> Order:
    """Check everything that can be checked. Raises ContractError or SettingsError with what to do."""
    if wishes.no_tests and wishes.test is not None:
        raise ContractError(
            "--no-tests and --test contradict each other.", suggestion="Leave one of them out."
        )
    source = open_source(wishes.repo)
    base = source.resolve(wishes.base or "HEAD")
    recipe = load_checked(wishes.recipe, contracts)
    task = new_id()
    branch = wishes.branch or branch_for(recipe.recipe, task)
    source.check_branch(branch)
    request = TaskRequest(
        recipe=recipe.model_dump(mode="json"),
        recipe_name=recipe.recipe,
        repository=str(source.work_tree or source.git_dir),
        base=base.commit,
        base_ref=base.ref,
        branch=branch,
        scope=_scope(wishes),
        test=None if wishes.no_tests else wanted_tests(_tests_asked(wishes), recipe, source, base),
        no_tests=wishes.no_tests,
        allow=_allowed(wishes.allow, contracts),
        allow_untested=wishes.allow_untested or wishes.no_tests,
        limits=_limits(wishes.limits),
        lane=Lane.INTERACTIVE,
        submitted_by=_user(),
        # What is not committed was left out of HEAD; of another base it says nothing.
        left_out=source.left_out() if wishes.base is None else (),
    )
    order = Order(task, request, recipe, source)
    if order.files_in_scope == 0:
        raise ContractError(
            f"No file of {base.ref} ({base.commit[:12]}) is in scope.",
            suggestion="Check --include, --exclude and the recipe's scope: globs are relative to the top folder.",
        )
    return order


def branch_for(recipe: str, task: str) -> str:
    """The name of a branch that the user did not name."""
    slug = re.sub(r"[^a-z0-9]+", "-", recipe.lower()).strip("-") or "refactor"
    return f"rolecall/{slug}-{short(task)}"


def _scope(wishes: Wishes) -> Scope:
    include = tuple(wishes.include) or ("**",)
    return Scope(include=include, exclude=tuple(wishes.exclude))


def _tests_asked(wishes: Wishes) -> TestsAsked:
    return TestsAsked(
        command=wishes.test,
        timeout_s=wishes.test_timeout_s,
        environment=wishes.env,
        virtual_env=wishes.virtual_env,
        sandbox=wishes.sandbox,
        may_be_none=wishes.allow_untested,
    )


def _allowed(words: Sequence[str], contracts: ContractRegistry) -> tuple[str, ...]:
    known = [*map(str, Effect), *(one.name for one in contracts if one.risk is Risk.HIGH)]
    found = [one for word in words for one in re.split(r"[,\s]+", word) if one]
    for one in found:
        if one not in known:
            hint = nearest(one, known)
            raise ContractError(
                f"--allow {one!r} is neither an effect nor a contract of high risk; there are {', '.join(known)}.",
                suggestion=f"Did you mean {hint!r}?" if hint else "",
            )
    return tuple(dict.fromkeys(found))


def _limits(words: Sequence[str]) -> Limits:
    known = list(Limits.model_fields)
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in known:
            hint = nearest(name, known)
            raise ContractError(
                f"--limit {word!r} is not NAME=VALUE with a name of {', '.join(known)}.",
                suggestion=f"Did you mean {hint!r}?" if hint and hint != name else "",
            )
        values[name] = value.strip()
    return _checked_limits(values)


def _checked_limits(values: Mapping[str, str]) -> Limits:
    try:
        return Limits.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise ContractError(f"--limit {first['loc'][0]}={first['input']}: {first['msg'].lower()}.") from error


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""

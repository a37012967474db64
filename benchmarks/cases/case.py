"""A case as data: which commit of which repository, the recipe that does it, and how the result is judged."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from ruamel.yaml import YAML

DATA = Path(__file__).with_name("data")
_SHA = r"^[0-9a-f]{40}$"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Count(_Model):
    """Lines that match a basic regular expression (as `git grep` reads it) must be so few afterwards."""

    grep: str
    paths: tuple[str, ...] = ()
    at_most: int = Field(default=0, ge=0)


class CaseTests(_Model):
    """How the repository's tests are run: a Python of this version, what is installed into a fresh environment
    (arguments of `pip install`, in the clone), and the command."""

    python: str = Field(pattern=r"^3\.[0-9]+$")
    install: tuple[tuple[str, ...], ...]
    command: tuple[str, ...] = Field(min_length=1)
    env: dict[str, str] = Field(default_factory=dict)
    timeout_s: float = 300


class Case(_Model):
    """One refactor. `recipe` is a shipped recipe's name or a recipe itself; `may_touch` are globs of paths besides
    those that the real commit changed; `differs` says by glob why a path is not what the people made of it."""

    case: str
    goal: str
    repository: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    parent: str = Field(pattern=_SHA)
    commit: str = Field(pattern=_SHA)
    recipe: str | dict[str, Any]
    judge: tuple[Count, ...] = Field(min_length=1)
    may_touch: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    differs: dict[str, str] = Field(default_factory=dict)
    tests: CaseTests | None = None


def read_case(path: Path) -> Case:
    """The case in a file. Raises pydantic's ValidationError with the key that is wrong."""
    with path.open("rb") as file:
        return Case.model_validate(YAML(typ="safe").load(file))


def chosen_cases(words: Sequence[str], folder: Path = DATA) -> list[Case]:
    """The cases whose name begins with one of the words, all without words. Raises SystemExit for an unknown one."""
    cases = [read_case(path) for path in sorted(folder.glob("*.yaml"))]
    for word in words:
        if not any(case.case.startswith(word.lower()) for case in cases):
            known = ", ".join(case.case for case in cases)
            raise SystemExit(f"There is no case {word!r}; there are {known}.")
    return [case for case in cases if not words or any(case.case.startswith(word.lower()) for word in words)]

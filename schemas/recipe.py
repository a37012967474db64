"""The recipe as data: what `recipe_file` reads from YAML, what a task request carries, what a plan is made from."""

from typing import Any

from pydantic import Field, model_validator

from schemas.base import Strict
from schemas.scope import Scope
from schemas.task import TestCommand

# Names end up in refs, branches and commit trailers: plain, short, and never something that git refuses.
NAME_PATTERN = r"^[a-z0-9]([a-z0-9._-]{0,58}[a-z0-9])?$"
CONTRACT_REF_PATTERN = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+@[0-9]+$"
MAX_RULES = 500


class RuleExample(Strict):
    """A file before and after the rule; the rule is tried on it before anything else happens."""

    before: str
    after: str
    path: str = "example.py"


class Rule(Strict):
    """One rule: a contract with its checked input, on the recipe's scope narrowed by its own."""

    id: str = Field(pattern=NAME_PATTERN)
    contract: str = Field(pattern=CONTRACT_REF_PATTERN)
    input: dict[str, Any]
    description: str = ""
    scope: Scope = Field(default_factory=Scope)
    examples: tuple[RuleExample, ...] = ()


class RecipeTest(Strict):
    """The recipe's own test command, a list of words; run without a shell."""

    command: tuple[str, ...] = Field(min_length=1)
    timeout_s: float = Field(default=600, gt=0)
    env: dict[str, str] = Field(default_factory=dict)

    def as_command(self, origin: str) -> TestCommand:
        """The same for a task request; `origin` says where it was found."""
        return TestCommand(command=self.command, timeout_s=self.timeout_s, env=self.env, found_in=origin)


class Recipe(Strict):
    """A refactor: rules in the order in which they land. `Recipe.model_dump(mode="json")` is its canonical form."""

    recipe: str = Field(pattern=NAME_PATTERN)
    description: str = ""
    scope: Scope = Field(default_factory=Scope)
    rules: tuple[Rule, ...] = Field(min_length=1, max_length=MAX_RULES)
    test: RecipeTest | None = None

    @model_validator(mode="after")
    def _ids_are_unique(self) -> "Recipe":
        seen: set[str] = set()
        for rule in self.rules:
            if not is_ref_safe(rule.id):
                raise ValueError(f"the rule id {rule.id!r} cannot be part of a git ref")
            if rule.id in seen:
                raise ValueError(f"two rules have the id {rule.id!r}")
            seen.add(rule.id)
        return self


def is_ref_safe(name: str) -> bool:
    """True if git takes the name as a part of a ref (the pattern allows dots, git not all of them)."""
    return ".." not in name and not name.endswith(".lock")

"""What a user submits, and the compact picture of a task that watchers get."""

from typing import Any

from pydantic import Field

from schemas.base import Strict, Tolerant
from schemas.scope import Scope
from schemas.words import Lane, TaskStatus, Verdict


class TestCommand(Strict):
    """How the repository's own tests are run.

    `environment` is the folder of a virtual environment that is activated; `checkout` is the user's folder over
    which the candidate's tree is bound, so that an editable install imports the candidate. `found_in` says
    where the command came from (option, recipe, or the file it was found in).
    """

    __test__ = False  # a model, not a test class: keeps pytest from collecting it

    command: tuple[str, ...] = Field(min_length=1)
    timeout_s: float = Field(default=600, gt=0)
    env: dict[str, str] = Field(default_factory=dict)
    environment: str | None = None
    checkout: str | None = None
    found_in: str = "option"


class Limits(Strict):
    """What a task may use before it is ended with that reason."""

    attempts_per_step: int = Field(default=4, ge=1)
    plan_revisions: int = Field(default=20, ge=1)
    wall_time_s: float = Field(default=6 * 3600, gt=0)
    actions: int = Field(default=50_000, ge=1)
    wait_for_role_s: float = Field(default=600, gt=0)


class TaskRequest(Strict):
    """One request of a user, complete: nothing else is looked up later.

    `recipe` is the checked recipe as data. `base` is a commit that is already in the hub. `allow` lists the
    effects granted at submission (`deletions`, `lock-files`, `build-files`, `ci-files`, `links`, `modes`,
    `git-files`, `submodules`, `line-ends`, `encodings`) and contracts of high risk by name. `no_tests` says that the
    user wanted none, so `test` is null. `follows` is the task that this one does again because its base moved.
    """

    recipe: dict[str, Any]
    recipe_name: str
    repository: str
    base: str = Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")
    base_ref: str
    branch: str
    scope: Scope = Field(default_factory=Scope)
    test: TestCommand | None = None
    allow: tuple[str, ...] = ()
    allow_untested: bool = False
    no_tests: bool = False
    limits: Limits = Field(default_factory=Limits)
    lane: Lane = Lane.INTERACTIVE
    submitted_by: str = ""
    left_out: tuple[str, ...] = ()
    follows: str | None = None


class RuleProgress(Tolerant):
    """One rule, as a watcher sees it: steps done of steps in all."""

    rule: str
    contract: str
    status: str
    steps: int = 0
    changed: int = 0
    reviewed: int = 0
    files: int = 0
    commit: str | None = None
    reason: str = ""


class TaskProgress(Tolerant):
    """A task at one moment; published on the feed, kept beside the task in the journal."""

    task: str
    status: TaskStatus
    phase: str
    sentence: str
    rules: tuple[RuleProgress, ...] = ()
    running: int = 0
    waiting_for: tuple[str, ...] = ()
    actions: int = 0
    baseline: Verdict | None = None
    head: str | None = None
    at: int = 0

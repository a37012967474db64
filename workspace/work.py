"""What a role's work function gets besides its action: `def handle(action, context) -> Handoff`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schemas.action import Action
from schemas.handoff import Handoff
from workspace.hub import Hub
from workspace.job import SandboxMode
from workspace.trees import TreeKeeper


@dataclass(frozen=True, slots=True)
class WorkContext:
    """The surroundings of one action, inside a slot's child process.

    `scratch` is an empty folder that is deleted after the action. `trees` gives disposable trees of any commit; the
    slot keeps them, so that the next one costs what differs. `cache` stays (this machine's memory; a reviewer never
    reads an executor's). `note` tells watchers what is being done, in a few words. `options` are the role's
    own settings.
    """

    hub: Hub
    scratch: Path
    cache: Path
    trees: TreeKeeper
    note: Callable[[str], None]
    sandbox: SandboxMode
    options: Mapping[str, Any] = field(default_factory=dict)


Handle = Callable[[Action, WorkContext], Handoff]

"""`python -m reviewer`: takes review actions from the bus until it is told to stop."""

import os
import sys

from bus.program import run_role
from bus.runtime import RoleSpec
from bus.settings import RoleSettings
from engines.registry import engines
from schemas.contracts import builtin_contracts
from workspace.children import ChildSettings, ChildWorkers
from workspace.job import SandboxMode


def build(settings: RoleSettings) -> tuple[RoleSpec, ChildWorkers]:
    """What this process serves, and a warm child per slot that does the work."""
    served = tuple(one for one in builtin_contracts() if one.pool == "reviewer")
    versions = {engine.name: engine.version for engine in engines()}
    scratch = settings.state_dir / "scratch" / f"reviewer-{os.getpid()}"
    cache = settings.state_dir / "cache" / "reviewer"
    sandbox = SandboxMode(settings.sandbox)
    child = ChildSettings("reviewer.work:handle", settings.hub_place, scratch, cache, sandbox)
    return RoleSpec("reviewer", "reviewer", served, versions, settings.slots), ChildWorkers(
        child, settings.slots
    )


if __name__ == "__main__":
    sys.exit(run_role("reviewer", build))

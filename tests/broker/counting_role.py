"""A role as its author writes it, for tests that start it as a process: counts words; "for ever" never ends."""

import asyncio
import sys
from collections.abc import Callable

from bus.program import run_role
from bus.served import RoleSpec
from bus.settings import RoleSettings
from bus.workers import InLoopWorkers, Workers
from schemas.action import Action
from schemas.handoff import Handoff
from tests.role_builders import POOL, PURE, done


async def count(action: Action, note: Callable[[str], None]) -> Handoff:
    note("counting")
    if action.input["text"] == "for ever":
        await asyncio.Event().wait()
    return done(action, output={"words": len(action.input["text"].split())})


def build(settings: RoleSettings) -> tuple[RoleSpec, Workers]:
    return RoleSpec("counter", POOL, (PURE,), {"wc": "1"}, settings.slots), InLoopWorkers(count)


if __name__ == "__main__":
    sys.exit(run_role("counter", build))

"""Serves an author's role on the role runtime: a child process per slot, or the event loop for an `async` handler."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bus.program import run_role
from bus.runtime import RoleSpec
from bus.settings import RoleSettings
from bus.workers import InLoopWorkers, OnNote, Workers
from rolecall.authoring import Role
from rolecall.plugin_work import FOLDER_OPTION, ROLE_OPTION, engine_of, is_async, load_role, perform_async
from schemas.action import Action
from schemas.contracts import ContractRegistry
from schemas.errors import RolecallError
from schemas.handoff import Handoff
from workspace.child_start import try_in_child
from workspace.children import ChildSettings, ChildWorkers
from workspace.hub import Hub
from workspace.job import SandboxMode

WORK = "rolecall.plugin_work:handle"
TRIAL = "rolecall.plugin_work:check_role"


def run_plugin(place: str, folder: Path, argv: Sequence[str]) -> int:
    """`rolecall role module:Class`: serve until told to stop; returns the exit code. Raises RolecallError."""
    role = load_role(place, folder)
    ContractRegistry.builtin().add(
        role.contract.document
    )  # a reserved name is refused here, not by the supervisor

    if not is_async(role):
        try_in_child(TRIAL, place, str(folder))

    def build(settings: RoleSettings) -> tuple[RoleSpec, Workers]:
        return spec_of(role, settings.slots), workers_of(role, place, folder, settings)

    return run_role(role.contract.document.pool, build, argv)


def spec_of(role: Role, slots: int) -> RoleSpec:
    """What the role announces."""
    document = role.contract.document
    return RoleSpec(
        role=document.pool, pool=document.pool, contracts=(document,), engines=engine_of(role), slots=slots
    )


def workers_of(role: Role, place: str, folder: Path, settings: RoleSettings) -> Workers:
    """Who does the work."""
    if is_async(role):
        return _HubWorkers(role, settings)
    pool = role.contract.document.pool
    own = settings.state_dir / "scratch" / f"{pool}-{os.getpid()}"
    kept = settings.state_dir / "cache" / pool
    options = {ROLE_OPTION: place, FOLDER_OPTION: str(folder)}
    child = ChildSettings(WORK, settings.hub_place, own, kept, SandboxMode(settings.sandbox), options)
    return ChildWorkers(child, settings.slots)


class _HubWorkers(InLoopWorkers):
    """Runs an `async` handler with one hub, opened when it is first needed."""

    def __init__(self, role: Role, settings: RoleSettings) -> None:
        super().__init__(self._perform)
        self._role = role
        self._settings = settings
        self._hub: Hub | None = None
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        """Let go of the hub."""
        if self._hub is not None:
            with suppress(RolecallError):
                self._hub.close()

    async def _perform(self, action: Action, on_note: OnNote) -> Handoff:
        on_note(f"running {action.contract}")
        async with self._opening:
            if self._hub is None:
                cache = self._settings.state_dir / "cache"
                self._hub = await asyncio.to_thread(Hub.open, self._settings.hub_place, cache_dir=cache)
        return await perform_async(self._role, action, self._hub)

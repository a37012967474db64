"""What the supervisor does with the hub: check results, compose candidates, move heads, read large bodies.

Blocking git work runs in threads of its own, never in the event loop. Every effect may be
carried out twice: composing gives the same commit, and a head that stands where it should has been moved.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from schemas.errors import RolecallError
from schemas.handoff import Finding, Handoff
from schemas.scope import Reach
from supervisor.believing import CommitFacts
from workspace.commit_check import check_result
from workspace.hub import Composed, Hub
from workspace.refs import candidate_ref, head_ref
from workspace.spill import unspill

T = TypeVar("T")
# Checking a result waits for git more than it computes; two at a time keep both cores busy.
THREADS = 2


class HubWork:
    """Git work for the supervisor, awaited."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="hub")

    async def close(self) -> None:
        """Wait for what runs."""
        await asyncio.to_thread(self._threads.shutdown)

    async def check(self, base: str, result: str, reach: Reach, allow: Sequence[str]) -> CommitFacts:
        """What the commits say about a result."""
        return await self._run(lambda hub: _check(hub, base, result, reach, allow))

    async def compose(
        self, task: str, base: str, results: Sequence[tuple[str, str]], message: str
    ) -> Composed | tuple[str, ...]:
        """The candidate (under a ref of its own, so that every machine can fetch it), or the paths in conflict."""
        return await self._run(lambda hub: _compose(hub, task, base, results, message))

    async def move_head(self, task: str, old: str, new: str) -> bool:
        """Move the task's head; True if it stands at `new` now."""
        return await self._run(lambda hub: _move(hub, head_ref(task), old, new))

    async def read(self, oid: str) -> bytes:
        """A blob's bytes."""
        return await self._run(lambda hub: _read(hub, oid))

    async def complete(self, handoff: Handoff) -> Handoff:
        """The handoff with its spilled fields read back."""
        return await self._run(lambda hub: unspill(handoff, hub))

    async def has(self, commit: str) -> bool:
        """True if the commit is in the hub."""
        return await self._run(lambda hub: _has(hub, commit))

    async def _run(self, work: Callable[[Hub], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, self._hub)


def _check(hub: Hub, base: str, result: str, reach: Reach, allow: Sequence[str]) -> CommitFacts:
    try:
        hub.ensure(result)
        findings = check_result(hub, base, result, reach, tuple(allow))
        changes = hub.changes(base, result)
    except RolecallError as error:
        return CommitFacts(findings=(Finding(gate="commit", text=str(error)),))
    return CommitFacts(
        findings=tuple(findings),
        paths=tuple(change.path for change in changes),
        added=sum(change.added for change in changes),
        removed=sum(change.removed for change in changes),
    )


def _compose(
    hub: Hub, task: str, base: str, results: Sequence[tuple[str, str]], message: str
) -> Composed | tuple[str, ...]:
    made = hub.compose(base, results, message=message)
    if not isinstance(made, Composed):
        return made.paths
    hub.publish(candidate_ref(task, made.commit), made.commit)
    return made


def _move(hub: Hub, ref: str, old: str, new: str) -> bool:
    found = hub.refs(ref).get(ref)
    if found == new:
        return True
    return hub.set_ref(ref, new, found if found == old else None)


def _read(hub: Hub, oid: str) -> bytes:
    hub.ensure(oid)
    return hub.read(oid)


def _has(hub: Hub, commit: str) -> bool:
    try:
        hub.ensure(commit)
    except RolecallError:
        return False
    return True

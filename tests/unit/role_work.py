"""Builders for calling a role's work function: an action, and the surroundings of a slot's child."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from schemas.action import Action
from schemas.scope import Reach, Scope, Shard
from workspace.hub import Hub
from workspace.job import SandboxMode
from workspace.trees import TreeKeeper
from workspace.work import WorkContext

_SCRATCH = count(1)


def action_for(
    contract: str,
    given: Mapping[str, Any],
    base: str,
    *,
    include: tuple[str, ...] = ("**",),
    start: str = "",
    stop: str | None = None,
    rule: str | None = "first",
    attempt: int = 1,
    time_limit_s: float = 120,
) -> Action:
    """An action as the supervisor would grant it."""
    return Action(
        task="0190-task",
        action_id="a1",
        step="first.1",
        rule=rule,
        contract=contract,
        input=dict(given),
        base=base,
        reach=Reach(scopes=(Scope(include=include),), shard=Shard(start=start, stop=stop)),
        attempt=attempt,
        nonce="n" * 32,
        pool="executor",
        environment="test",
        time_limit_s=time_limit_s,
    )


@contextmanager
def hub_in(folder: Path) -> Iterator[Hub]:
    """A fresh hub that is closed at the end."""
    with Hub.create(folder / "hub.git") as hub:
        yield hub


def context_in(folder: Path, hub: Hub, *, sandbox: SandboxMode = SandboxMode.BUBBLEWRAP) -> WorkContext:
    """A slot's surroundings: an empty scratch folder each time, a cache that stays."""
    scratch = folder / f"scratch-{next(_SCRATCH)}"
    scratch.mkdir()
    cache = folder / "cache"
    cache.mkdir(exist_ok=True)
    trees = TreeKeeper(hub, folder / "trees")
    return WorkContext(
        hub=hub, scratch=scratch, cache=cache, trees=trees, note=lambda _: None, sandbox=sandbox
    )

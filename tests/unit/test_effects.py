"""Effects in the hub: their outcome always comes back, whatever the hub does."""

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from schemas.errors import WorkspaceError
from supervisor.effects import TRIES, Effects
from supervisor.hub_work import HubWork
from supervisor.intake import Fact
from supervisor.minting import Effect
from supervisor.saga.commands import Compose, MoveHead
from supervisor.saga.messages import ComposeDone, HeadDone
from workspace.hub import Composed

COMPOSE = Effect("t", "effect-1", Compose(1, 2, "base", (("base", "r"),), "message"))
MOVE = Effect("t", "effect-2", MoveHead("old", "new"))


class ScriptedHub:
    """Fails as often as it is told to."""

    def __init__(self, failures: int = 0, error: Exception | None = None) -> None:
        self.calls = 0
        self.failures = failures
        self.error = error or WorkspaceError("No space left on device.")
        self.conflicts: tuple[str, ...] = ()

    async def compose(
        self, task: str, base: str, results: Sequence[tuple[str, str]], message: str
    ) -> Composed | tuple[str, ...]:
        self._count()
        return self.conflicts or Composed("commit", ("a.py",))

    async def move_head(self, task: str, old: str, new: str) -> bool:
        self._count()
        return new == "new"

    def _count(self) -> None:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error


async def outcome(hub: ScriptedHub, effect: Effect, monkeypatch: pytest.MonkeyPatch) -> Fact:
    monkeypatch.setattr("supervisor.effects.RETRY_S", 0)
    facts: asyncio.Queue[Fact] = asyncio.Queue()
    effects = Effects(cast(HubWork, hub), facts.put_nowait)
    effects.start(effect)
    await effects.close()
    return facts.get_nowait()


async def test_a_candidate_is_reported_with_the_run_of_the_rule_that_it_belongs_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fact = await outcome(ScriptedHub(), COMPOSE, monkeypatch)

    done = cast(ComposeDone, fact.message)
    assert (fact.task, fact.sent, fact.delivery) == ("t", "effect-1", None)
    assert (done.rule, done.generation, done.base, done.commit, done.conflicts) == (
        1,
        2,
        "base",
        "commit",
        (),
    )


async def test_a_conflict_is_reported_with_its_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = ScriptedHub()
    hub.conflicts = ("a.py",)

    done = cast(ComposeDone, (await outcome(hub, COMPOSE, monkeypatch)).message)

    assert (done.commit, done.conflicts) == (None, ("a.py",))


async def test_a_head_that_moved_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    done = cast(HeadDone, (await outcome(ScriptedHub(), MOVE, monkeypatch)).message)

    assert (done.commit, done.moved, done.reason) == ("new", True, "")


async def test_a_hub_that_recovers_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = ScriptedHub(failures=TRIES - 1)

    done = cast(HeadDone, (await outcome(hub, MOVE, monkeypatch)).message)

    assert (hub.calls, done.moved) == (TRIES, True)


@pytest.mark.parametrize(
    "error", [WorkspaceError("No space left."), OSError("No git."), RuntimeError("A defect.")]
)
async def test_a_hub_that_does_not_recover_is_told_as_the_reason(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    moved = cast(HeadDone, (await outcome(ScriptedHub(TRIES, error), MOVE, monkeypatch)).message)
    composed = cast(ComposeDone, (await outcome(ScriptedHub(TRIES, error), COMPOSE, monkeypatch)).message)

    assert (moved.moved, moved.reason) == (False, f"the hub refused it: {error}")
    assert (composed.commit, composed.reason) == (None, f"the hub refused it: {error}")

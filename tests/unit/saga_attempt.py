"""A task that stands at the dispatch of its only change, for tests of attempts and holders."""

from typing import Any

from supervisor.saga.commands import Dispatch, StopAction
from supervisor.saga.messages import LoseHolder
from supervisor.saga.state import ActionKind, ActionState
from tests.unit.saga_world import World, rule

W1, W2, W3 = "worker-1", "worker-2", "worker-3"


def at_the_change(**changes: Any) -> tuple[World, Dispatch]:
    """A world whose only change has just been dispatched; whoever accepts it is up to the test."""
    known = {"rules": (rule("one"),), "shard_count": 1, "canary": False}
    world = World(**{**known, **changes})
    dispatch = world.until(Dispatch)
    while dispatch.spec.kind is not ActionKind.CHANGE:
        world.obey(dispatch)
        dispatch = world.until(Dispatch)
    world.commands.clear()
    return world, dispatch


def live(world: World, dispatch: Dispatch) -> ActionState:
    return world.state.actions[dispatch.spec.action_id]


def lose(world: World, dispatch: Dispatch, instance: str) -> None:
    told = LoseHolder(world.at, dispatch.spec.action_id, dispatch.attempt, instance, "its process was lost")
    world.tell(told)


def next_attempt(world: World) -> Dispatch:
    """The next dispatch, once its back-off is over."""
    world.tick(40)
    world.fill()
    found = [one for one in world.outbox if isinstance(one, Dispatch)]
    world.outbox.clear()
    return found[-1]


def stops(world: World) -> list[tuple[str, int, str]]:
    return [(one.instance, one.attempt, one.reason) for one in world.commands if isinstance(one, StopAction)]

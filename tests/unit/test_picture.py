"""What watchers see: the picture of a task, and its sentence at every turn."""

from collections.abc import Callable

import pytest

from schemas.task import RuleProgress, TaskProgress
from schemas.words import TaskStatus, Verdict
from supervisor.picture import picture, sentence
from supervisor.saga.commands import Dispatch
from supervisor.saga.messages import Cancel
from supervisor.saga.moves import Phase
from supervisor.saga.state import ActionKind, TaskState
from tests.unit.saga_world import BASE, EVERYONE, World, rule


def until(true: Callable[[World], bool], *, shard_count: int = 3) -> World:
    """A task, stopped at the first moment at which this is true."""
    world = World((rule("one"), rule("two")), shard_count=shard_count)
    world.submit()
    while not true(world):
        if not world.outbox:
            world.fill()
        world.obey(world.outbox.popleft())
    return world


def runs(kind: ActionKind) -> Callable[[World], bool]:
    return lambda world: any(one.spec.kind is kind for one in world.state.actions.values())


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (lambda world: True, "planning, and testing the unchanged repository"),
        (lambda world: world.state.phase is Phase.CANARY, "trying each rule on a first shard"),
        (runs(ActionKind.CANARY_TEST), "testing the canary"),
        (lambda world: world.state.phase is Phase.REVISING, "revising the plan"),
        (lambda world: world.state.phase is Phase.LANDING, "changing one (0 of 3 steps)"),
        (lambda world: bool(world.state.chain), "changing two (0 of 3 steps) and testing one"),
        (lambda world: world.state.status.is_final, "everything landed"),
    ],
)
def test_a_sentence_says_what_is_going_on(moment: Callable[[World], bool], words: str) -> None:
    assert sentence(until(moment).state) == words


def test_a_task_that_is_not_known_yet_waits_to_be_accepted() -> None:
    assert sentence(TaskState("t")) == "waiting to be accepted"


def test_a_task_without_a_role_says_for_whom_it_waits() -> None:
    world = until(lambda world: True)
    world.tick(1, live=EVERYONE - {"planner", "tester"})

    assert sentence(world.state) == "waiting for a process that serves planner, tester"
    assert picture(world.state, 5).waiting_for == ("planner", "tester")


def test_a_task_that_waits_for_its_head_says_how_it_will_end() -> None:
    world = until(lambda world: world.state.moving_to is not None, shard_count=1)
    world.tell(Cancel(world.at, "asked by the user"))

    assert sentence(world.state) == "ending (canceled: asked by the user), once the head stands still"


def test_the_picture_of_a_task_under_way() -> None:
    world = until(lambda world: bool(world.state.chain), shard_count=1)
    one = world.state.rules[0]

    told = picture(world.state, 99)

    assert told == TaskProgress(
        task="task-1",
        status=TaskStatus.WORKING,
        phase="landing",
        sentence="changing two (0 of 1 steps) and testing one",
        rules=(
            RuleProgress(
                rule="one",
                contract="rewrite.pattern@1",
                status="composed",
                steps=1,
                changed=1,
                reviewed=1,
                files=1,
                commit=one.commit,
            ),
            RuleProgress(rule="two", contract="rewrite.pattern@1", status="running", steps=1),
        ),
        running=0,
        actions=5,
        baseline=Verdict.PASS,
        head=BASE,
        at=99,
    )


def test_what_waits_for_a_slot_does_not_run() -> None:
    world = World((rule("one"),))
    world.submit()
    before = picture(world.state, 1).running
    world.fill()

    assert (before, picture(world.state, 1).running) == (0, 2)
    assert all(isinstance(one, Dispatch) for one in world.outbox)

"""The tables of allowed moves, what an illegal one does, and the diagram."""

from collections.abc import Mapping
from enum import StrEnum
from itertools import product
from typing import Any

import pytest

from schemas.words import Outcome, TaskStatus
from supervisor.saga import events as ev
from supervisor.saga.evolve import evolve
from supervisor.saga.moves import (
    ACTION_MOVES,
    PHASE_MOVES,
    RULE_MOVES,
    STEP_MOVES,
    TASK_MOVES,
    ActionStatus,
    IllegalMoveError,
    Phase,
    RuleStatus,
    StepStatus,
    diagram,
    moved,
)
from supervisor.saga.state import ActionState, RuleState, StepState, TaskState
from tests.unit.saga_world import BASE, World, rule

TABLES: tuple[tuple[type[StrEnum], Any], ...] = (
    (TaskStatus, TASK_MOVES),
    (Phase, PHASE_MOVES),
    (RuleStatus, RULE_MOVES),
    (StepStatus, STEP_MOVES),
    (ActionStatus, ACTION_MOVES),
)
PAIRS = [(table, old, new) for words, table in TABLES for old, new in product(words, words) if old != new]


@pytest.mark.parametrize(
    ("table", "old", "new"), PAIRS, ids=lambda one: str(one) if isinstance(one, StrEnum) else ""
)
def test_every_pair_that_no_table_names_is_refused(
    table: Mapping[StrEnum, frozenset[StrEnum]], old: StrEnum, new: StrEnum
) -> None:
    if new in table.get(old, frozenset()):
        assert moved(table, old, new) is new
    else:
        with pytest.raises(IllegalMoveError, match=f"{old} may not become {new}"):
            moved(table, old, new)


def test_staying_where_one_is_is_no_move() -> None:
    assert moved(TASK_MOVES, TaskStatus.COMPLETED, TaskStatus.COMPLETED) is TaskStatus.COMPLETED


@pytest.mark.parametrize("status", [one for one in TaskStatus if one.is_final])
def test_nothing_follows_the_end_of_a_task(status: TaskStatus) -> None:
    assert status not in TASK_MOVES


def test_what_landed_or_was_given_up_is_final_and_what_was_unchanged_only_as_long_as_its_base_stands() -> (
    None
):
    assert RuleStatus.LANDED not in RULE_MOVES
    assert RuleStatus.UNLANDED not in RULE_MOVES
    assert RULE_MOVES[RuleStatus.UNCHANGED] == {RuleStatus.WAITING}


@pytest.mark.parametrize(
    "event",
    [
        ev.TaskRejected(at=1, reason="late"),
        ev.PhaseEntered(at=1, phase=Phase.REVISING),
        ev.RuleComposed(at=1, rule=0, commit="c", base=BASE),
        ev.RuleLanded(at=1, rule=0, commit="c"),
        ev.RuleGathered(at=1, rule=0),
        ev.RuleUnchanged(at=1, rule=0, reason="late"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_that_may_not_follow_raises_and_changes_nothing(event: ev.Event) -> None:
    world = World((rule("one"),), shard_count=1, canary=False)
    world.submit()
    state = world.state
    before = (state.status, state.phase, state.rules, state.actions, state.chain)

    with pytest.raises(IllegalMoveError):
        evolve(state, event)

    assert (state.status, state.phase, state.rules, state.actions, state.chain) == before


def test_a_step_that_ended_may_not_end_again_as_something_else() -> None:
    step = StepState("one.s0", 0, 0, BASE, status=StepStatus.KEPT)
    state = TaskState("t", rules=(RuleState(rule("one")),), steps=TaskState("t").steps.set("one.s0", step))

    with pytest.raises(IllegalMoveError):
        evolve(state, ev.StepEnded(at=1, step="one.s0", status=StepStatus.UNLANDED))


def test_an_action_that_ended_is_gone_and_its_events_find_nothing() -> None:
    world = World((rule("one"),), shard_count=1)
    world.submit()
    (action_id, *_) = world.state.actions
    ended = evolve(
        world.state, ev.ActionEnded(at=1, action_id=action_id, attempt=0, outcome=Outcome.CANCELED)
    )

    with pytest.raises(KeyError):
        evolve(ended, ev.ActionHeld(at=1, action_id=action_id, attempt=1, instance="w", due=2))


def test_an_action_cannot_be_sent_while_it_runs() -> None:
    world = World((rule("one"),), shard_count=1)
    world.submit()
    (action_id, *_) = world.state.actions
    running = ActionState(world.state.actions[action_id].spec, ActionStatus.RUNNING)
    actions = world.state.actions.set(action_id, running)
    state = TaskState("t", actions=actions)

    with pytest.raises(IllegalMoveError):
        evolve(state, ev.ActionDispatched(at=1, action_id=action_id, attempt=2, nonce="n" * 16, due=2))


def test_the_diagram_shows_every_allowed_move_once() -> None:
    lines = diagram().splitlines()

    arrows = [line.strip() for line in lines if "-->" in line]
    names = {TaskStatus: "task", RuleStatus: "rule", StepStatus: "step", ActionStatus: "action"}
    allowed = {
        f"{names[words]}_{old} --> {names[words]}_{new}"
        for words, table in TABLES
        if words in names
        for old, following in table.items()
        for new in following
    }
    assert (set(arrows), len(arrows)) == (allowed, len(allowed))
    assert lines[0] == "stateDiagram-v2"
    assert sum(line.strip() == "}" for line in lines) == sum("{" in line for line in lines) == 4

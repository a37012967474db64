"""Which state may follow which: the tables that `evolve` obeys and that ARCHITECTURE.md's diagram is printed from.

A move that no table allows raises and changes nothing.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from schemas.errors import RolecallError
from schemas.words import TaskStatus


class Phase(StrEnum):
    """Where a working task stands."""

    PLANNING = "planning"
    CANARY = "canary"
    REVISING = "revising"
    LANDING = "landing"
    DONE = "done"


class RuleStatus(StrEnum):
    """The life of one rule."""

    WAITING = "waiting"
    RUNNING = "running"
    COMPOSING = "composing"
    COMPOSED = "composed"
    LANDED = "landed"
    UNCHANGED = "unchanged"
    UNLANDED = "unlanded"


class StepStatus(StrEnum):
    """The life of one step: a rule on a shard."""

    CHANGING = "changing"
    REVIEWING = "reviewing"
    KEPT = "kept"
    UNCHANGED = "unchanged"
    UNLANDED = "unlanded"


class ActionStatus(StrEnum):
    """The life of one action; an attempt is one pass through dispatched and running."""

    READY = "ready"
    DISPATCHED = "dispatched"
    RUNNING = "running"
    ENDED = "ended"


class IllegalMoveError(RolecallError):
    """A state may not follow another: a defect in `decide`, or a journal of another release."""


S = TypeVar("S", bound=StrEnum)

TASK_MOVES: Mapping[TaskStatus, frozenset[TaskStatus]] = {
    TaskStatus.SUBMITTED: frozenset({TaskStatus.WORKING, TaskStatus.REJECTED}),
    TaskStatus.WORKING: frozenset(
        {TaskStatus.INPUT_REQUIRED, TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELED}
    ),
    TaskStatus.INPUT_REQUIRED: frozenset({TaskStatus.WORKING, TaskStatus.FAILED, TaskStatus.CANCELED}),
}

PHASE_MOVES: Mapping[Phase, frozenset[Phase]] = {
    Phase.PLANNING: frozenset({Phase.CANARY, Phase.LANDING, Phase.DONE}),
    Phase.CANARY: frozenset({Phase.REVISING, Phase.DONE}),
    Phase.REVISING: frozenset({Phase.LANDING, Phase.DONE}),
    Phase.LANDING: frozenset({Phase.REVISING, Phase.DONE}),
}

RULE_MOVES: Mapping[RuleStatus, frozenset[RuleStatus]] = {
    RuleStatus.WAITING: frozenset({RuleStatus.RUNNING, RuleStatus.UNLANDED}),
    RuleStatus.RUNNING: frozenset(
        {RuleStatus.COMPOSING, RuleStatus.UNCHANGED, RuleStatus.UNLANDED, RuleStatus.WAITING}
    ),
    RuleStatus.COMPOSING: frozenset({RuleStatus.COMPOSED, RuleStatus.UNLANDED, RuleStatus.WAITING}),
    RuleStatus.COMPOSED: frozenset({RuleStatus.LANDED, RuleStatus.UNLANDED, RuleStatus.WAITING}),
    RuleStatus.UNCHANGED: frozenset({RuleStatus.WAITING}),
}

STEP_MOVES: Mapping[StepStatus, frozenset[StepStatus]] = {
    StepStatus.CHANGING: frozenset(
        {StepStatus.REVIEWING, StepStatus.KEPT, StepStatus.UNCHANGED, StepStatus.UNLANDED}
    ),
    StepStatus.REVIEWING: frozenset(
        {StepStatus.KEPT, StepStatus.UNCHANGED, StepStatus.UNLANDED, StepStatus.CHANGING}
    ),
}

ACTION_MOVES: Mapping[ActionStatus, frozenset[ActionStatus]] = {
    # ready → running: an attempt that was given up turned up after all
    ActionStatus.READY: frozenset({ActionStatus.DISPATCHED, ActionStatus.RUNNING, ActionStatus.ENDED}),
    ActionStatus.DISPATCHED: frozenset({ActionStatus.RUNNING, ActionStatus.READY, ActionStatus.ENDED}),
    ActionStatus.RUNNING: frozenset({ActionStatus.READY, ActionStatus.ENDED}),
}


def moved(table: Mapping[S, frozenset[S]], old: S, new: S) -> S:
    """`new`, if it may follow `old`. Raises IllegalMoveError otherwise; staying put is always allowed."""
    if new != old and new not in table.get(old, frozenset()):
        raise IllegalMoveError(f"{type(old).__name__}: {old} may not become {new}.")
    return new


def diagram() -> str:
    """The tables as one Mermaid state diagram, for ARCHITECTURE.md."""
    lines = ["stateDiagram-v2"]
    for title, table in (
        ("task", TASK_MOVES),
        ("rule", RULE_MOVES),
        ("step", STEP_MOVES),
        ("action", ACTION_MOVES),
    ):
        lines.append(f"    state {title} {{")
        lines += [
            f"        {title}_{old} --> {title}_{new}"
            for old, following in table.items()
            for new in sorted(following, key=list(type(old)).index)
        ]
        lines.append("    }")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(diagram())

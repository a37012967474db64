"""Who gets the free slots: by pool, by lane, and in turn between tasks.

Only what live slots can start soon is dispatched, so that queues stay short and TTL, cancel and priority mean
something.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from schemas.words import Lane
from supervisor.saga.decide import pools_with_work
from supervisor.saga.state import TaskState

# A standing task gets one slot in this many while interactive ones want them all.
STANDING_SHARE = 4


@dataclass(frozen=True, slots=True)
class Offer:
    """Slots of a pool, offered to one task."""

    task: str
    pool: str
    count: int


def offers(
    states: Iterable[TaskState], slots: Mapping[str, int], turns: Mapping[str, int]
) -> tuple[Offer, ...]:
    """Share out the free slots. `slots` counts what live processes can run, by pool.

    `turns` counts how often slots of a pool were offered so far, and rotates who comes first.
    """
    listed = list(states)
    wanting: dict[str, list[TaskState]] = {}
    inflight: dict[str, int] = {}
    for state in listed:
        for pool in pools_with_work(state):
            wanting.setdefault(pool, []).append(state)
        for pool, count in state.inflight.items():
            inflight[pool] = inflight.get(pool, 0) + count
    made: list[Offer] = []
    for pool, tasks in sorted(wanting.items()):
        free = slots.get(pool, 0) - inflight.get(pool, 0)
        if free > 0:
            made += _share(pool, free, tasks, turns.get(pool, 0))
    return tuple(made)


def _share(pool: str, free: int, tasks: Sequence[TaskState], turn: int) -> list[Offer]:
    if len(tasks) == 1:
        return [Offer(tasks[0].task, pool, free)]
    interactive = [task for task in tasks if task.asked.lane is Lane.INTERACTIVE]
    standing = [task for task in tasks if task.asked.lane is not Lane.INTERACTIVE]
    for_standing = free if not interactive else (free + turn % STANDING_SHARE) // STANDING_SHARE
    shares = (
        *_split(interactive, free - for_standing if standing else free, turn),
        *_split(standing, for_standing, turn),
    )
    return [Offer(task.task, pool, count) for task, count in shares if count]


def _split(tasks: Sequence[TaskState], slots: int, turn: int) -> list[tuple[TaskState, int]]:
    """`slots` over the tasks as evenly as can be; who gets the odd ones moves on with `turn`."""
    if not tasks:
        return []
    each, odd = divmod(slots, len(tasks))
    first = turn % len(tasks)
    order = [*tasks[first:], *tasks[:first]]
    return [(task, each + (index < odd)) for index, task in enumerate(order)]

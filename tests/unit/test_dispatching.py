"""Who gets the free slots: lanes, turns, and nothing where nothing is free."""

from collections import Counter
from typing import Any

from schemas.words import Lane
from supervisor.dispatching import STANDING_SHARE, Offer, offers
from supervisor.saga.messages import Slots
from supervisor.saga.state import TaskState
from tests.unit.saga_world import World, request, rule


def waiting(name: str, *, lane: Lane = Lane.INTERACTIVE, **changes: Any) -> TaskState:
    """A task whose plan and baseline wait for a slot."""
    world = World((rule("one"),), request=request(lane=lane, **changes), state=TaskState(name))
    world.submit()
    return world.state


def shared(tasks: list[TaskState], slots: dict[str, int], turn: int = 0) -> dict[str, int]:
    """Who is offered how many slots of the planner's pool."""
    made = offers(tasks, slots, {"planner": turn})
    return {one.task: one.count for one in made if one.pool == "planner"}


def test_a_task_alone_is_offered_every_free_slot_of_the_pools_it_waits_for() -> None:
    made = offers([waiting("a")], {"planner": 2, "tester": 1, "executor": 9}, {})

    assert made == (Offer("a", "planner", 2), Offer("a", "tester", 1))


def test_without_a_free_slot_nothing_is_offered() -> None:
    world = World((rule("one"),))
    world.submit()
    world.tell(Slots(world.at, "planner", 1))
    busy = world.state

    assert offers([waiting("a")], {}, {}) == ()
    assert shared([waiting("a"), busy], {"planner": 1}) == {}
    assert shared([waiting("a"), busy], {"planner": 2}) == {"a": 1}


def test_work_under_way_beyond_the_slots_that_are_left_offers_nothing() -> None:
    world = World((rule("one"),))
    world.submit()
    world.tell(Slots(world.at, "planner", 1))

    assert shared([waiting("a"), world.state], {"planner": 0}) == {}


def test_slots_are_shared_evenly_and_the_odd_one_goes_round() -> None:
    tasks = [waiting(name) for name in "abc"]

    assert shared(tasks, {"planner": 6}) == {"a": 2, "b": 2, "c": 2}
    odd = [shared(tasks, {"planner": 4}, turn) for turn in range(3)]
    assert odd == [{"a": 2, "b": 1, "c": 1}, {"b": 2, "c": 1, "a": 1}, {"c": 2, "a": 1, "b": 1}]


def test_one_slot_serves_every_task_in_turn() -> None:
    tasks = [waiting(name) for name in "abc"]

    served = Counter(name for turn in range(30) for name in shared(tasks, {"planner": 1}, turn))

    assert served == {"a": 10, "b": 10, "c": 10}


def test_a_standing_task_gets_a_share_while_interactive_ones_want_them_all() -> None:
    tasks = [waiting("now"), waiting("some-day", lane=Lane.STANDING)]

    many = shared(tasks, {"planner": 8})
    one_by_one = Counter(name for turn in range(40) for name in shared(tasks, {"planner": 1}, turn))

    assert many == {"now": 8 - 8 // STANDING_SHARE, "some-day": 8 // STANDING_SHARE}
    assert one_by_one == {"now": 40 - 40 // STANDING_SHARE, "some-day": 40 // STANDING_SHARE}


def test_standing_tasks_among_themselves_get_all() -> None:
    tasks = [waiting(name, lane=Lane.STANDING) for name in "ab"]

    assert shared(tasks, {"planner": 4}) == {"a": 2, "b": 2}


def test_never_more_is_offered_than_is_free() -> None:
    tasks = [waiting(f"i{number}") for number in range(3)]
    tasks += [waiting(f"s{number}", lane=Lane.STANDING) for number in range(2)]

    for free in range(12):
        for turn in range(12):
            assert sum(shared(tasks, {"planner": free}, turn).values()) == free


def test_the_turns_of_one_pool_do_not_move_those_of_another() -> None:
    tasks = [waiting("a"), waiting("b")]

    made = offers(tasks, {"planner": 1, "tester": 1}, {"planner": 1, "tester": 2})

    assert made == (Offer("b", "planner", 1), Offer("a", "tester", 1))


def test_a_task_that_ends_wants_nothing_more() -> None:
    world = World((rule("one"),), shard_count=1)
    world.submit()
    world.run()

    assert offers([world.state], {"planner": 3, "executor": 3}, {}) == ()

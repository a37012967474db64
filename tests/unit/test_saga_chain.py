"""The chain of candidates: tested once, covered, dropped, composed again."""

import pytest

from schemas.words import TaskStatus, Verdict
from supervisor.saga import events as ev
from supervisor.saga.commands import Compose, Dispatch, StopAction
from supervisor.saga.messages import ComposeDone
from supervisor.saga.moves import RuleStatus
from supervisor.saga.state import ActionKind
from tests.unit.saga_world import (
    World,
    changed,
    commit_id,
    done,
    red,
    rule,
    unchanged,
)


def test_a_candidate_is_not_tested_again_because_the_one_below_it_landed() -> None:
    world = World((rule("one"), rule("two")), shard_count=1)
    waiting: list[Dispatch] = []

    def test(one: Dispatch) -> None:
        waiting.append(one)

    world.test = test
    world.submit()
    world.run()
    first, second = waiting
    world.hand_off(done(first, verdict=Verdict.PASS))
    world.run()
    world.hand_off(done(second, verdict=Verdict.PASS))
    world.run()

    assert world.state.status is TaskStatus.COMPLETED
    assert len(world.steps_of(ActionKind.TEST)) == 2


def test_the_test_of_a_commit_that_a_later_one_covers_is_stopped() -> None:
    world = World((rule("one"), rule("two"), rule("three")), shard_count=1)
    waiting: list[Dispatch] = []

    def test(one: Dispatch) -> None:
        waiting.append(one)

    world.test = test
    world.submit()
    world.run()
    world.hand_off(done(waiting[1], verdict=Verdict.PASS))
    world.run()

    stopped = [one.action_id for one in world.commands if isinstance(one, StopAction)]
    assert stopped == [waiting[0].spec.action_id]
    assert world.statuses == [RuleStatus.LANDED, RuleStatus.LANDED, RuleStatus.COMPOSED]
    assert [one.tested for one in world.names(ev.RuleLanded)] == [None, Verdict.PASS]


def test_a_dropped_rule_ends_the_tests_of_what_stands_on_it() -> None:
    world = World((rule("one"), rule("two")), shard_count=1)
    waiting: list[Dispatch] = []

    def test(one: Dispatch) -> None:
        waiting.append(one)

    world.test = test
    world.submit()
    world.run()
    world.hand_off(red(waiting[0]))

    stopped = [one.action_id for one in world.commands if isinstance(one, StopAction)]
    assert stopped == [waiting[1].spec.action_id]
    assert world.statuses[0] is RuleStatus.UNLANDED


def test_a_rule_whose_own_results_conflict_is_named_with_the_paths() -> None:
    world = World((rule("one"), rule("two")), shard_count=1)
    compose = world.until(Compose)

    world.tell(
        ComposeDone(world.at, 0, compose.generation, compose.base, None, conflicts=("a", "b", "c", "d"))
    )
    world.run()

    assert world.state.rules[0].reason == "two of its steps changed the same path: a, b, c"
    assert world.statuses == [RuleStatus.UNLANDED, RuleStatus.LANDED]


@pytest.mark.parametrize("generation", [0, 2])
def test_a_candidate_of_another_run_of_the_rule_is_ignored(generation: int) -> None:
    world = World((rule("one"),), shard_count=1)
    compose = world.until(Compose)
    before = world.state

    world.tell(ComposeDone(world.at, 0, generation, compose.base, commit_id("old")))

    assert world.state == before


def test_a_rule_that_was_unchanged_on_what_fell_is_asked_again() -> None:
    world = World((rule("one"), rule("two")), shard_count=1)
    world.test = lambda one: red(one)
    world.change = lambda one: (
        unchanged(one) if one.spec.rule_id == "two" and one.spec.step == "two.s0" else changed(one)
    )
    world.submit()
    world.run()

    assert world.steps_of(ActionKind.CHANGE) == ["one.s0", "two.s0", "two.g2.s0"]

"""The course of a task: plan, canary, fan-out, review, compose, test, land."""

from schemas.handoff import Handoff
from schemas.task import Limits
from schemas.words import TaskStatus, Verdict
from supervisor.saga import events as ev
from supervisor.saga.commands import Dispatch
from supervisor.saga.moves import RuleStatus
from supervisor.saga.state import ActionKind, Proof
from tests.unit.saga_world import World, changed, done, failed, red, refused, request, rule, unchanged


def finished(world: World) -> World:
    world.submit()
    world.run()
    return world


def test_a_healthy_task_lands_every_rule_in_the_recipes_order() -> None:
    world = finished(World((rule("one"), rule("two"))))

    assert world.state.status is TaskStatus.COMPLETED
    assert [event.rule for event in world.names(ev.RuleLanded)] == [0, 1]
    assert world.state.head == world.names(ev.RuleLanded)[-1].commit
    assert not world.state.actions


def test_the_canary_runs_before_the_fan_out_and_does_not_land() -> None:
    world = finished(World((rule("one"), rule("two"))))

    changes = world.steps_of(ActionKind.CHANGE)
    assert changes[:2] == ["one.canary", "two.canary"]
    assert [event.revision for event in world.names(ev.PlanAsked)] == [1, 2]
    assert len(world.names(ev.HeadMoved)) == 2


def test_what_the_canary_did_on_the_same_base_is_not_done_again() -> None:
    world = finished(World((rule("one"),)))

    assert world.steps_of(ActionKind.CHANGE) == ["one.canary", "one.s1", "one.s2"]
    assert world.state.rules[0].sites == 6


def test_a_plan_of_single_shards_has_no_canary() -> None:
    world = finished(World((rule("one"), rule("two")), shard_count=1))

    assert world.steps_of(ActionKind.CHANGE) == ["one.s0", "two.s0"]
    assert world.state.status is TaskStatus.COMPLETED


def test_a_rule_whose_tests_fail_is_named_and_the_next_one_starts_again_without_it() -> None:
    world = World((rule("one"), rule("two")), shard_count=1)
    world.test = lambda one: (
        red(one) if one.spec.base == world.state.rules[0].commit else done(one, verdict=Verdict.PASS)
    )

    finished(world)

    assert [one.status for one in world.state.rules] == [RuleStatus.UNLANDED, RuleStatus.LANDED]
    assert world.state.rules[0].reason == "its tests fail: test_a fails"
    assert world.state.status is TaskStatus.COMPLETED
    assert world.state.reason == "1 of 2 rules landed"


def test_a_slow_suite_is_run_once_for_the_whole_batch() -> None:
    world = finished(World(tuple(rule(name) for name in "abcd"), shard_count=1, baseline_ms=60_000))

    assert len(world.steps_of(ActionKind.TEST)) == 1
    assert world.state.status is TaskStatus.COMPLETED
    landed = world.names(ev.RuleLanded)
    assert [event.tested for event in landed] == [None, None, None, Verdict.PASS]


def test_a_red_batch_is_bisected_down_to_the_one_rule() -> None:
    world = World(tuple(rule(name) for name in "abcdefgh"), shard_count=1, baseline_ms=60_000)

    def test(one: Dispatch) -> Handoff:
        stack = [
            c.rule
            for c in world.state.chain[: [c.commit for c in world.state.chain].index(one.spec.base) + 1]
        ]
        return red(one) if 5 in stack else done(one, verdict=Verdict.PASS)

    world.test = test

    finished(world)

    assert [index for index, one in enumerate(world.state.rules) if one.status is RuleStatus.UNLANDED] == [5]
    assert len(world.steps_of(ActionKind.TEST)) <= 6


def test_paths_that_the_review_refuses_are_left_out_and_named() -> None:
    world = World((rule("one"),), shard_count=1)

    def review(one: Dispatch) -> Handoff:
        paths = [p for scope in one.spec.reach.scopes for p in scope.exclude]
        return done(one, verdict=Verdict.PASS) if "bad.py" in paths else refused(one, "bad.py")

    world.review = review

    finished(world)

    assert world.state.rules[0].status is RuleStatus.LANDED
    assert [(one.path, one.reason) for one in world.state.rules[0].refusals] == [
        ("bad.py", "review, parses: does not parse any more")
    ]
    assert "1 part of them did not" in world.state.reason


def test_a_rule_that_the_review_refuses_altogether_is_not_landed() -> None:
    world = World((rule("one"), rule("two")), shard_count=1)
    world.review = lambda one: (
        refused(one) if one.spec.step.startswith("one") else done(one, verdict=Verdict.PASS)
    )

    finished(world)

    assert [one.status for one in world.state.rules] == [RuleStatus.UNLANDED, RuleStatus.LANDED]


def test_a_rule_that_finds_nothing_is_unchanged_and_only_that_fails_the_task() -> None:
    world = World((rule("one"), rule("two")), shard_count=1, change=unchanged)

    finished(world)

    assert [one.status for one in world.state.rules] == [RuleStatus.UNCHANGED] * 2
    assert (world.state.status, world.state.reason) == (TaskStatus.FAILED, "no rule found anything to change")


def test_nothing_lands_untested_unless_it_is_allowed() -> None:
    strict = finished(World((rule("one"),), baseline=Verdict.COULD_NOT_RUN))
    loose = finished(
        World((rule("one"),), baseline=Verdict.COULD_NOT_RUN, request=request(allow_untested=True))
    )

    assert strict.state.status is TaskStatus.FAILED
    assert "--env" in strict.state.reason
    assert loose.state.status is TaskStatus.COMPLETED
    assert loose.names(ev.RuleLanded)[0].tested is None


def test_without_a_test_command_nothing_ran() -> None:
    world = finished(World((rule("one"),), request=request(test=None)))

    assert world.state.status is TaskStatus.FAILED
    assert "--allow-untested" in world.state.reason


def test_the_same_failure_twice_is_a_loop_and_stops() -> None:
    world = World((rule("one"),), shard_count=1, change=failed)
    world.submit()
    world.run()
    world.tick(2)
    world.run()

    assert world.steps_of(ActionKind.CHANGE) == ["one.s0", "one.s0"]
    assert world.state.status is TaskStatus.FAILED
    assert "it crashed" in world.state.reason


def test_a_contract_that_no_engine_repeats_is_run_twice_and_compared() -> None:
    same = finished(World((rule("one", proof=Proof.TWICE),), shard_count=1))
    differs = World((rule("one", proof=Proof.TWICE),), shard_count=1)
    differs.change = lambda one: done(one, result=("1" if one.spec.kind is ActionKind.TWIN else "2") * 40)
    finished(differs)

    assert (same.steps_of(ActionKind.CHANGE), same.steps_of(ActionKind.TWIN)) == (["one.s0"], ["one.s0"])
    assert same.state.status is TaskStatus.COMPLETED
    assert "not pure" in differs.state.reason


def test_a_contract_that_changes_nothing_needs_no_review_and_no_test() -> None:
    noop = rule("noop", proof=Proof.NONE, changes_tree=False)
    world = finished(
        World(
            (noop,),
            shard_count=20,
            canary=False,
            change=unchanged,
            request=request(test=None, allow_untested=True),
        )
    )

    assert len(world.steps_of(ActionKind.CHANGE)) == 20
    assert not world.steps_of(ActionKind.REVIEW)
    assert world.state.status is TaskStatus.COMPLETED


def test_a_shard_that_runs_out_of_time_has_the_rule_cut_smaller() -> None:
    world = World((rule("one"),), shard_count=2, canary=False)

    def change(one: Dispatch) -> Handoff:
        if world.shard_count == 2:
            world.shard_count = 4
            return failed(one, "time_limit", "60 s were not enough")
        return changed(one)

    world.change = change

    finished(world)

    assert world.state.status is TaskStatus.COMPLETED
    assert len(world.state.rules[0].kept) == 4


def test_nothing_runs_ahead_of_a_rule_that_may_not_be_run_ahead_of() -> None:
    world = World((rule("one"), rule("two")), shard_count=1, run_ahead=False)
    order: list[str] = []

    def passing(one: Dispatch) -> Handoff:
        order.append("test" if one.spec.kind is ActionKind.TEST else one.spec.step)
        return done(one, verdict=Verdict.PASS)

    world.test = world.review = passing

    finished(world)

    assert order == ["one.s0", "test", "two.s0", "test"]


def test_the_limit_of_actions_ends_the_task_and_names_what_to_raise() -> None:
    world = finished(World((rule("one"),), shard_count=50, request=request(limits=Limits(actions=10))))

    assert world.state.status is TaskStatus.FAILED
    assert "limit of 10 actions" in world.state.reason

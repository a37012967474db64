"""How a task ends: canceled, out of time, out of actions, nobody there, its head moved away; and what follows."""

from schemas.handoff import Handoff
from schemas.task import Limits
from schemas.words import Outcome, TaskStatus
from supervisor.saga import events as ev
from supervisor.saga.commands import Dispatch, MoveHead, StopAction
from supervisor.saga.messages import Cancel, Deliver, HeadDone
from supervisor.saga.moves import Phase, RuleStatus
from supervisor.saga.state import ActionKind, Proof
from tests.unit.saga_world import (
    EVERYONE,
    World,
    changed,
    commit_id,
    done,
    failed,
    request,
    rule,
    unchanged,
)


def test_a_cancel_stops_what_runs_and_names_what_does_not_land() -> None:
    world = World((rule("one"), rule("two")), shard_count=1)
    dispatch = world.until(Dispatch)
    world.accept(dispatch)
    world.commands.clear()

    world.tell(Cancel(world.at, "asked by the user"))

    assert world.state.status is TaskStatus.CANCELED
    assert [(one.status, one.reason) for one in world.state.rules] == [
        (RuleStatus.UNLANDED, "canceled: asked by the user")
    ] * 2
    assert [(one.instance, one.action_id) for one in world.commands if isinstance(one, StopAction)] == [
        ("worker-1", dispatch.spec.action_id)
    ]
    assert not world.state.actions
    assert not any(world.state.inflight.values())


def test_what_landed_before_a_cancel_stays_landed() -> None:
    world = World((rule("one"), rule("two")), shard_count=1, run_ahead=False)
    world.until(MoveHead)
    world.tell(HeadDone(world.at, world.state.moving_to or "", moved=True))

    world.tell(Cancel(world.at, "enough"))

    assert world.statuses == [RuleStatus.LANDED, RuleStatus.UNLANDED]
    assert world.state.status is TaskStatus.CANCELED


def test_a_cancel_while_the_head_is_moved_waits_for_the_move_and_tells_what_landed() -> None:
    world = World((rule("one"), rule("two")), shard_count=1, run_ahead=False)
    move = world.until(MoveHead)

    world.tell(Cancel(world.at, "enough"))
    between = world.state.status
    world.tell(Cancel(world.at, "enough!"))
    world.tell(HeadDone(world.at, move.new, moved=True))

    assert between is TaskStatus.WORKING
    assert (world.state.status, world.state.reason) == (TaskStatus.CANCELED, "canceled: enough")
    assert world.statuses == [RuleStatus.LANDED, RuleStatus.UNLANDED]
    assert world.state.head == move.new


def test_a_cancel_while_the_move_of_the_head_fails_lands_nothing() -> None:
    world = World((rule("one"),), shard_count=1)
    move = world.until(MoveHead)

    world.tell(Cancel(world.at, "enough"))
    world.tell(HeadDone(world.at, move.new, moved=False))

    assert (world.state.status, world.state.reason) == (TaskStatus.CANCELED, "canceled: enough")
    assert (world.statuses, world.state.head) == ([RuleStatus.UNLANDED], world.request.base)


def test_nothing_new_begins_while_a_task_ends() -> None:
    world = World((rule("one"), rule("two", file_shardable=False)), shard_count=1)
    world.until(MoveHead)
    world.tell(Cancel(world.at, "enough"))
    world.outbox.clear()

    world.fill()
    world.tick(10_000)

    assert (list(world.outbox), world.state.status) == ([], TaskStatus.WORKING)


def test_a_head_that_somebody_else_moved_ends_the_task() -> None:
    world = World((rule("one"),), shard_count=1)
    move = world.until(MoveHead)

    world.tell(HeadDone(world.at, move.new, moved=False))

    assert world.state.status is TaskStatus.FAILED
    assert world.state.reason == "the task's head was moved by somebody else in the hub"


def test_a_hub_that_refuses_to_move_the_head_is_named() -> None:
    world = World((rule("one"),), shard_count=1)
    move = world.until(MoveHead)

    world.tell(HeadDone(world.at, move.new, moved=False, reason="the hub refused it: disk full"))

    assert world.state.reason == "the hub refused it: disk full"


def test_the_end_of_a_move_that_was_not_asked_for_is_ignored() -> None:
    world = World((rule("one"),), shard_count=1)
    world.until(MoveHead)
    before = world.state

    world.tell(HeadDone(world.at, commit_id("another"), moved=True))

    assert world.state == before


def test_the_time_limit_ends_the_task_and_names_what_to_raise() -> None:
    world = World((rule("one"),), request=request(limits=Limits(wall_time_s=100)))
    world.submit()

    world.tick(100)
    at_the_limit = world.state.status
    world.tick(1)

    assert at_the_limit is TaskStatus.WORKING
    assert world.state.status is TaskStatus.FAILED
    assert world.state.reason == "the time limit of 100 s is over (raise it with --limit wall_time_s=N)"


def test_the_last_allowed_action_still_runs() -> None:
    needed = World((rule("one"),), shard_count=1)
    needed.submit()
    needed.run()
    exactly = World(
        (rule("one"),), shard_count=1, request=request(limits=Limits(actions=needed.state.spent_actions))
    )
    exactly.submit()
    exactly.run()
    one_less = World(
        (rule("one"),), shard_count=1, request=request(limits=Limits(actions=needed.state.spent_actions - 1))
    )
    one_less.submit()
    one_less.run()

    assert exactly.state.status is TaskStatus.COMPLETED
    assert (one_less.state.status, one_less.state.reason[:31]) == (
        TaskStatus.FAILED,
        "the limit of 4 actions is used ",
    )
    assert len({one.spec.action_id for one in one_less.dispatched}) == needed.state.spent_actions - 1


def test_a_pool_that_nobody_serves_is_named_and_no_longer_once_somebody_comes() -> None:
    world = World((rule("one"),))
    world.submit()

    world.tick(1, live=EVERYONE - {"planner"})
    missed = dict(world.state.waiting)
    world.tick(1, live=EVERYONE - {"planner"})
    world.tick(1)

    assert missed == {"planner": world.at - 2_000_000}
    assert [one.pool for one in world.names(ev.PoolMissed)] == ["planner"]
    assert [one.pool for one in world.names(ev.PoolServed)] == ["planner"]
    assert not world.state.waiting


def test_work_that_was_sent_to_a_pool_which_is_empty_now_waits_too() -> None:
    world = World((rule("one"),))
    world.submit()
    world.fill()

    world.tick(1, live=EVERYONE - {"planner", "tester"})

    assert sorted(world.state.waiting) == ["planner", "tester"]


def test_a_pool_that_nobody_serves_for_too_long_ends_the_task_with_that_reason() -> None:
    world = World((rule("one"),), request=request(limits=Limits(wait_for_role_s=60)))
    world.submit()
    world.tick(1, live=EVERYONE - {"planner"})

    world.tick(60, live=EVERYONE - {"planner"})
    at_the_limit = world.state.status
    world.tick(1, live=EVERYONE - {"planner"})

    assert at_the_limit is TaskStatus.WORKING
    assert world.state.status is TaskStatus.FAILED
    assert (
        world.state.reason
        == "no live process served the pool 'planner' for 60 s; start one and run the task again"
    )


def test_an_outage_of_our_own_does_not_count_as_the_absence_of_a_role() -> None:
    world = World((rule("one"),), request=request(limits=Limits(wait_for_role_s=60)))
    world.submit()
    world.tick(1, live=EVERYONE - {"planner"})

    world.tick(3_600, live=frozenset(), steady_since=None)
    back_at = world.at
    world.tick(60, live=EVERYONE - {"planner"}, steady_since=back_at)
    soon_after = world.state.status
    world.tick(1, live=EVERYONE - {"planner"}, steady_since=back_at)

    assert (soon_after, world.state.status) == (TaskStatus.WORKING, TaskStatus.FAILED)


def test_a_planner_that_gives_nothing_ends_the_task() -> None:
    world = World((rule("one"),), request=request(limits=Limits(attempts_per_step=1)))
    planner = world.until(Dispatch)
    assert planner.spec.kind is ActionKind.PLAN

    world.accept(planner)
    world.hand_off(done(planner, outcome=Outcome.FAILED))

    assert world.state.status is TaskStatus.FAILED
    assert world.state.reason == "no plan could be made: no reason given"


def test_without_a_revised_plan_the_first_one_holds() -> None:
    world = World((rule("one"),), request=request(limits=Limits(attempts_per_step=1)))
    world.plan = lambda one: done(one, outcome=Outcome.FAILED) if one.spec.step == "plan.r2" else None
    world.submit()
    world.run()

    assert world.state.status is TaskStatus.COMPLETED
    assert [one.reason for one in world.names(ev.PlanFailed)] == ["no reason given"]


def test_the_limit_of_plan_revisions_goes_on_with_the_plan_there_is() -> None:
    world = World((rule("one"),), request=request(limits=Limits(plan_revisions=1)))
    world.submit()
    world.run()

    assert world.state.status is TaskStatus.COMPLETED
    assert world.steps_of(ActionKind.PLAN) == ["plan.r1"]


def test_a_revision_that_is_asked_for_again_is_another_action() -> None:
    world = World((rule("one"),), shard_count=2, request=request(limits=Limits(attempts_per_step=1)))
    asked: list[str] = []

    def plan(one: Dispatch) -> Handoff | None:
        asked.append(f"{one.spec.step} {one.spec.action_id}")
        return done(one, outcome=Outcome.FAILED) if len(asked) == 2 else None

    def change(one: Dispatch) -> Handoff:
        return (
            failed(one, "time_limit", "too long")
            if len(asked) == 2 and one.spec.step == "one.s1"
            else changed(one)
        )

    world.plan, world.change = plan, change
    world.submit()
    world.run()

    assert [one.split()[0] for one in asked] == ["plan.r1", "plan.r2", "plan.r2"]
    assert len(set(asked)) == 3
    assert world.state.status is TaskStatus.COMPLETED


def test_a_recipe_that_changes_nothing_needs_no_test() -> None:
    noop = rule("noop", proof=Proof.NONE, changes_tree=False)
    world = World((noop,), shard_count=2, canary=False, change=unchanged, request=request(test=None))
    world.submit()
    world.run()

    assert (world.state.status, world.state.reason) == (TaskStatus.COMPLETED, "everything ran")


def test_a_branch_is_recorded_once_also_after_the_end() -> None:
    world = World((rule("one"),), shard_count=1)
    world.submit()
    world.run()

    world.tell(Deliver(world.at, "rolecall/demo", world.state.head, "ada"))
    world.tell(Deliver(world.at, "rolecall/demo", world.state.head, "ada"))

    (delivered,) = world.names(ev.BranchDelivered)
    assert (delivered.branch, delivered.commit, delivered.by) == ("rolecall/demo", world.state.head, "ada")
    assert world.state.delivered == "rolecall/demo"


def test_a_second_submission_and_a_late_cancel_change_nothing() -> None:
    world = World((rule("one"),), shard_count=1)
    world.submit()
    working = world.state
    world.submit()
    assert world.state == working

    world.run()
    ended = world.state
    world.submit()
    world.tell(Cancel(world.at, "too late"))
    world.tick(10_000)

    assert world.state == ended
    assert world.state.phase is Phase.DONE


def test_what_is_not_a_submission_finds_no_task_before_one() -> None:
    world = World((rule("one"),))
    before = world.state

    world.tell(Cancel(world.at, "too early"))
    world.tick(1)

    assert (world.state, world.events) == (before, [])

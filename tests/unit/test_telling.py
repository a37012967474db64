"""Every event has words, or is silent on purpose."""

import pytest

from schemas.words import TaskStatus, Verdict
from supervisor.saga import events as ev
from supervisor.saga.events import EVENTS
from supervisor.saga.state import Baseline, Refusal, RuleState, TaskState
from supervisor.telling import Told, tell
from tests.unit.saga_world import BASE, PLANNER, REVIEWER, TESTER, World, request, rule

COMMIT = "c" * 40
STATE = TaskState("t", request=request(), rules=(RuleState(rule("one")), RuleState(rule("two"))))
# Everyday turns, told by what they lead to.
SILENT = {
    "PhaseEntered", "ActionOpened", "ActionReadied", "ActionDispatched", "ActionHeld", "LeaseEnded", "ActionEnded",
    "PlanAsked", "CanaryMoved", "CanaryNoted", "StepOpened", "StepReturned", "StepEnded", "RuleGathered",
    "HeadMoving", "HeadMoved",
}  # fmt: skip

CASES: list[tuple[ev.Event, Told]] = [
    (
        ev.TaskAccepted(
            at=1,
            request=request(),
            rules=(rule("one"),),
            plan_contract=PLANNER,
            review_contract=REVIEWER,
            test_contract=TESTER,
            secret="s",
        ),
        Told("task_accepted", "demo on repo: 1 rule."),
    ),
    (
        ev.TaskRejected(at=1, reason="no such contract"),
        Told("task_rejected", "The request was refused: no such contract", warns=True),
    ),
    (
        ev.TaskEnding(at=1, status=TaskStatus.CANCELED, reason="canceled: asked"),
        Told("task_ending", "Ending once the head stands still: canceled: asked."),
    ),
    (
        ev.TaskEnded(at=1, status=TaskStatus.COMPLETED, reason="everything landed"),
        Told("task_ended", "Completed: everything landed."),
    ),
    (
        ev.TaskEnded(at=1, status=TaskStatus.FAILED, reason="nothing landed"),
        Told("task_ended", "Failed: nothing landed.", warns=True),
    ),
    (ev.BranchDelivered(at=1, branch="b", commit=COMMIT), Told("branch_delivered", "Delivered as b.")),
    (
        ev.PoolMissed(at=1, pool="tester"),
        Told("pool_missed", "Waiting for a process that serves tester.", warns=True),
    ),
    (ev.PoolServed(at=1, pool="tester"), Told("pool_served", "tester is served again.")),
    (
        ev.PlanFailed(at=1, reason="it crashed"),
        Told("plan_failed", "No plan came back: it crashed.", warns=True),
    ),
    (
        ev.BaselineKnown(at=1, verdict=Verdict.PASS, passed=9, failed=2, duration_ms=1_234),
        Told("baseline_known", "Baseline: 9 tests pass, 2 failed before any change (1.2 s)."),
    ),
    (
        ev.BaselineKnown(at=1, verdict=Verdict.COULD_NOT_RUN, reason="no pytest"),
        Told("baseline_known", "Baseline could_not_run: no pytest.", warns=True),
    ),
    (
        ev.CanaryTested(at=1, verdict=Verdict.FAIL),
        Told("canary_tested", "The canary's tests: fail.", warns=True),
    ),
    (
        ev.CanaryTested(at=1, verdict=None, reason="the canaries changed nothing"),
        Told("canary_tested", "The canary's tests: the canaries changed nothing."),
    ),
    (
        ev.RuleStarted(at=1, rule=1, base=BASE),
        Told("rule_started", "two starts on bbbbbbbbbbbb, 0 steps."),
    ),
    (
        ev.RuleComposed(at=1, rule=0, commit=COMMIT, base=BASE),
        Told("rule_composed", "one is one commit now, 0 files: cccccccccccc."),
    ),
    (
        ev.RuleUnchanged(at=1, rule=0, reason="nothing matches"),
        Told("rule_unchanged", "one: nothing matches."),
    ),
    (
        ev.RuleUnlanded(at=1, rule=0, reason="its tests fail"),
        Told("rule_unlanded", "one does not land: its tests fail.", warns=True),
    ),
    (
        ev.RulesReset(at=1, first=1, reason="one did not land"),
        Told("rules_reset", "Starting again from two: one did not land.", warns=True),
    ),
    (
        ev.StepNarrowed(at=1, step="one.s0", refusals=(Refusal(step="one.s0", path="a.py", reason="no"),)),
        Told("step_narrowed", "one.s0 runs again without a.py.", warns=True),
    ),
    (
        ev.CandidateTested(at=1, commit=COMMIT, verdict=Verdict.FAIL, passed=1, failed=2),
        Told("candidate_tested", "Tests of cccccccccccc: fail (1 passed, 2 failed).", warns=True),
    ),
    (
        ev.RuleLanded(at=1, rule=0, commit=COMMIT, tested=Verdict.PASS),
        Told("rule_landed", "one landed as cccccccccccc, tested."),
    ),
    (
        ev.RuleLanded(at=1, rule=0, commit=COMMIT),
        Told("rule_landed", "one landed as cccccccccccc, covered by a later test."),
    ),
    (
        ev.AttemptFailed(
            at=1, action_id="a-1", attempt=2, code="crash", message="it crashed", instance="w", retry_at=2
        ),
        Told("attempt_failed", "Attempt 2 of a-1 failed on w: crash: it crashed.", warns=True),
    ),
    (
        ev.HandoffSetAside(at=1, action_id="a-1", attempt=1, instance="w", reason="the nonce is forged"),
        Told("handoff_set_aside", "A handoff of a-1 was set aside: the nonce is forged.", warns=True),
    ),
    (
        ev.HandoffSetAside(at=1, action_id="a-1", attempt=1, instance="w", reason="it is over", is_late=True),
        Told("handoff_set_aside", "A handoff of a-1 was set aside: it is over."),
    ),
]


@pytest.mark.parametrize(("event", "told"), CASES, ids=lambda one: type(one).__name__)
def test_what_is_said_of_an_event(event: ev.Event, told: Told) -> None:
    assert tell(STATE, event) == told


def test_a_plan_is_told_with_its_reason_and_how_finely_it_cuts() -> None:
    world = World((rule("one"), rule("two", file_shardable=False)))
    world.submit()
    world.run()
    adopted = world.names(ev.PlanAdopted)[-1]

    assert tell(world.state, adopted) == Told("plan_adopted", "Plan 2, 4 shards: after the canary.")


def test_what_landed_without_tests_says_so() -> None:
    untested = TaskState("t", rules=STATE.rules, baseline=Baseline(Verdict.NOTHING_RAN))
    landed = ev.RuleLanded(at=1, rule=0, commit=COMMIT)

    assert tell(untested, landed) == Told("rule_landed", "one landed as cccccccccccc, untested.")


def test_every_event_is_told_or_silent_on_purpose() -> None:
    spoken = {type(event).__name__ for event, _ in CASES} | {"PlanAdopted"}

    assert spoken | SILENT == set(EVENTS)
    assert not spoken & SILENT


def test_the_silent_ones_say_nothing_in_a_whole_task() -> None:
    world = World((rule("one"), rule("two")))
    world.submit()
    world.run()

    said = {tell(world.state, event) for event in world.events if type(event).__name__ in SILENT}

    assert said == {None}

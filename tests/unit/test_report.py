"""The report of a task, from recorded stories."""

from pathlib import Path

import pytest

from schemas.errors import ContractError
from schemas.handoff import Cost, Evidence, FileChange, Handoff, Residue, RiskNote, Spill
from schemas.report import Report, TestsTold, Unlanded
from schemas.task import Limits
from schemas.words import ChangeKind, Severity, TaskStatus, Verdict
from supervisor.journal.report import report
from supervisor.saga.commands import Compose, Dispatch
from supervisor.saga.messages import Cancel, Submit
from supervisor.saga.state import Proof
from tests.unit.recorded import Recorded, reading, recording, told
from tests.unit.saga_world import changed, done, failed, red, refused, request, rule, unchanged

RISK = RiskNote(severity=Severity.WARNING, text="a comment was lost", path="a.py")
CHECKED = Evidence(claim="the same tree again", verdict=Verdict.PASS, command=("rerun",), exit_code=0)


def reported(folder: Path, world: Recorded) -> Report:
    told(folder, world)
    with reading(folder) as reader:
        return report(reader, "task-1")


def change(one: Dispatch) -> Handoff:
    """A change with all that a report tells of it."""
    path = f"{one.spec.reach.shard.start or 'a'}.py"
    return changed(one).model_copy(
        update={
            "files": (FileChange(path=path, change=ChangeKind.MODIFIED, added=2, removed=1),),
            "residue": (Residue(path=path, line=7, text="now()", reason="in a string"),),
            "risks": (RISK,),
            "cost": Cost(wall_ms=100, cpu_ms=50),
        }
    )


def review(one: Dispatch) -> Handoff:
    gates = {"rerun": "pass", "parses": "pass"}
    return done(
        one, verdict=Verdict.PASS, output={"gates": gates}, evidence=(CHECKED,), cost=Cost(wall_ms=10)
    )


def test_a_healthy_story_is_told_rule_by_rule_with_its_proof(tmp_path: Path) -> None:
    world = Recorded((rule("one"), rule("two")), shard_count=1, change=change, review=review)
    world.test = lambda one: done(one, verdict=Verdict.PASS, output={"passed": 10, "by": "junit"})

    found = reported(tmp_path, world)

    one = found.rules[0]
    assert (found.status, found.reason, found.head) == (
        TaskStatus.COMPLETED,
        "everything landed",
        world.state.head,
    )
    assert [(rule.rule, rule.status, rule.sites, rule.files) for rule in found.rules] == [
        ("one", "landed", 2, 1),
        ("two", "landed", 2, 1),
    ]
    assert (one.proof, one.proof_by) == ("rerun", "1 review by worker-1")
    assert one.gates == {"rerun": Verdict.PASS, "parses": Verdict.PASS}
    assert one.tested == TestsTold(verdict=Verdict.PASS, passed=10, by="junit")
    assert one.changed_files == (FileChange(path="a.py", change=ChangeKind.MODIFIED, added=2, removed=1),)
    assert one.residue == (Residue(path="a.py", line=7, text="now()", reason="in a string"),)
    assert (one.residue_count, one.risks, one.evidence) == (1, (RISK,), (CHECKED,))
    assert found.baseline == TestsTold(verdict=Verdict.PASS, passed=10, duration_ms=1_000)
    assert (found.untested, found.unlanded, found.retries, found.set_aside) == (False, (), 0, 0)
    assert found.attempts == found.actions == 8
    assert found.cost == Cost(wall_ms=220, cpu_ms=100)
    assert found.plan_revisions == ("1: first",)
    assert found.workers == ("worker-1",)


def test_what_the_canary_did_is_cited_where_it_was_kept(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), shard_count=3, change=change, review=review)

    found = reported(tmp_path, world)

    assert found.rules[0].proof_by == "3 reviews by worker-1"
    assert [one.path for one in found.rules[0].changed_files] == ["a.py", "0001.py", "0002.py"]
    assert found.plan_revisions == ("1: first", "2: after the canary")


def test_a_retry_is_counted_and_its_cost_too(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), shard_count=1)
    tries: list[Dispatch] = []

    def flaky(one: Dispatch) -> Handoff:
        tries.append(one)
        return failed(one).model_copy(update={"cost": Cost(wall_ms=7)}) if len(tries) == 1 else change(one)

    world.change = flaky
    with recording(tmp_path, world):
        world.submit()
        world.run()
        world.tick(2)
        world.run()
    with reading(tmp_path) as reader:
        found = report(reader, "task-1")

    assert (found.status, found.retries, found.attempts) == (TaskStatus.COMPLETED, 1, found.actions + 1)
    assert found.cost.wall_ms == 107


def test_paths_that_the_review_refused_are_named_although_the_rule_landed(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), shard_count=1)

    def strict(one: Dispatch) -> Handoff:
        excluded = [path for scope in one.spec.reach.scopes for path in scope.exclude]
        return review(one) if "bad.py" in excluded else refused(one, "bad.py")

    world.review = strict

    found = reported(tmp_path, world)

    assert found.rules[0].status == "landed"
    assert found.unlanded == (
        Unlanded(rule="one", step="one.s0", path="bad.py", reason="review, parses: does not parse any more"),
    )


def test_a_rule_whose_tests_failed_is_named_with_what_the_tests_said(tmp_path: Path) -> None:
    world = Recorded((rule("one"), rule("two")), shard_count=1, change=change, review=review)
    world.test = lambda one: red(one) if one.spec.base == world.state.rules[0].commit else review(one)

    found = reported(tmp_path, world)

    assert found.unlanded == (Unlanded(rule="one", reason="its tests fail: test_a fails"),)
    assert [one.status for one in found.rules] == ["unlanded", "landed"]
    assert found.rules[1].proof_by == "1 review by worker-1"
    assert found.reason == "1 of 2 rules landed"


def test_a_canceled_task_names_what_did_not_land_and_only_that(tmp_path: Path) -> None:
    world = Recorded((rule("none"), rule("one"), rule("two")), shard_count=1)
    world.change = lambda one: unchanged(one) if one.spec.rule_id == "none" else change(one)
    with recording(tmp_path, world):
        world.submit()
        while not (world.outbox and isinstance(world.outbox[0], Compose)):
            if not world.outbox:
                world.fill()
            world.obey(world.outbox.popleft())
        world.tell(Cancel(world.at, "asked by the user"))
    with reading(tmp_path) as reader:
        found = report(reader, "task-1")

    assert (found.status, found.reason) == (TaskStatus.CANCELED, "canceled: asked by the user")
    assert [one.status for one in found.rules] == ["unchanged", "unlanded", "unlanded"]
    assert found.unlanded == (
        Unlanded(rule="one", reason="canceled: asked by the user"),
        Unlanded(rule="two", reason="canceled: asked by the user"),
    )


def test_a_rule_that_started_again_tells_only_of_its_last_run(tmp_path: Path) -> None:
    world = Recorded((rule("one"), rule("two")), shard_count=1, change=change, review=review)
    world.test = lambda one: red(one)
    with recording(tmp_path, world):
        world.submit()
        while world.state.rules[1].generation < 2:
            if not world.outbox:
                world.fill()
            world.obey(world.outbox.popleft())
        world.tell(Cancel(world.at, "enough"))
    with reading(tmp_path) as reader:
        found = report(reader, "task-1")

    assert found.rules[1].changed_files == ()
    assert found.rules[1].proof_by == ""


@pytest.mark.parametrize("with_request", [True, False])
def test_a_rejected_request_is_told_with_its_reason(tmp_path: Path, with_request: bool) -> None:
    world = Recorded((rule("one"),))
    with recording(tmp_path, world):
        world.tell(Submit(world.at, request() if with_request else None, refused="there is no contract 'x'"))
    with reading(tmp_path) as reader:
        found = report(reader, "task-1")

    assert (found.status, found.reason) == (TaskStatus.REJECTED, "there is no contract 'x'")
    assert (found.recipe, found.rules, found.unlanded) == ("demo" if with_request else "", (), ())


@pytest.mark.parametrize(
    ("twin", "proof_by"),
    [
        ("worker-2", "two runs on different instances gave the same commits"),
        ("worker-1", "two runs on one instance gave the same commits"),
    ],
)
def test_a_contract_that_no_engine_repeats_says_how_it_was_proved(
    tmp_path: Path, twin: str, proof_by: str
) -> None:
    world = Recorded((rule("one", proof=Proof.TWICE),), shard_count=1)

    def second(one: Dispatch) -> Handoff | None:
        if one.spec.kind != "twin":
            return changed(one)
        world.accept(one, twin)
        world.hand_off(changed(one), twin)
        return None

    world.change = second

    found = reported(tmp_path, world)

    assert (found.rules[0].proof, found.rules[0].proof_by) == ("twice", proof_by)


def test_what_landed_without_tests_on_purpose_says_so(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), request=request(test=None, allow_untested=True, no_tests=True))

    found = reported(tmp_path, world)

    assert (found.untested, found.no_tests) == (True, True)
    assert found.baseline == TestsTold(
        verdict=Verdict.NOTHING_RAN, reason="tests were switched off with --no-tests"
    )


def test_what_landed_untested_says_so(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), request=request(test=None, allow_untested=True))

    found = reported(tmp_path, world)

    assert (found.untested, found.test_command) == (True, ())
    assert found.baseline == TestsTold(
        verdict=Verdict.NOTHING_RAN, reason="no test command was given or found"
    )


def test_handoffs_that_were_set_aside_are_counted(tmp_path: Path) -> None:
    world = Recorded((rule("one"),), shard_count=1)

    def stranger(one: Dispatch) -> Handoff:
        world.hand_off(changed(one), "a-stranger")
        return changed(one)

    world.change = stranger

    assert reported(tmp_path, world).set_aside == 1


def test_spilled_fields_are_counted_and_read_back_where_the_hub_is_at_hand(tmp_path: Path) -> None:
    spill = Spill(blob="1" * 40, digest="d", count=3, size_bytes=9)
    places = tuple(Residue(path=f"{number}.py", reason="in a string") for number in range(3))
    world = Recorded((rule("one"),), shard_count=1)
    world.change = lambda one: changed(one).model_copy(update={"spilled": {"residue": spill}})
    told(tmp_path, world)

    def complete(handoff: Handoff) -> Handoff:
        return handoff.model_copy(update={"residue": places, "spilled": {}})

    with reading(tmp_path) as reader:
        without, whole = report(reader, "task-1"), report(reader, "task-1", complete)

    assert [(one.rules[0].residue, one.rules[0].residue_count) for one in (without, whole)] == [
        ((), 3),
        (places, 3),
    ]


def test_an_unknown_task_is_an_error_that_says_where_to_look(tmp_path: Path) -> None:
    told(tmp_path, Recorded((rule("one"),)))

    with reading(tmp_path) as reader, pytest.raises(ContractError, match="`rolecall list` shows them"):
        report(reader, "task-2")


def test_a_task_that_gave_up_for_want_of_actions_names_every_rule(tmp_path: Path) -> None:
    world = Recorded((rule("one"), rule("two")), request=request(limits=Limits(actions=4)))

    found = reported(tmp_path, world)

    assert [one.rule for one in found.unlanded] == ["one", "two"]
    assert {one.reason for one in found.unlanded} == {found.reason}

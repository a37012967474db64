"""What the supervisor refuses to believe, and why."""

from typing import Any

import pytest

from schemas.handoff import Evidence, FileChange, Finding, Handoff, Spill
from schemas.plan import Plan, PlannedRule
from schemas.scope import Reach, Shard
from schemas.words import ChangeKind, Outcome, Severity, Shardable, Verdict
from supervisor.believing import RESULT_GATES, CommitFacts, plan_faults, refusals
from supervisor.saga.state import ActionKind, ActionSpec, Proof, RuleState, TaskState
from tests.unit.saga_world import BASE, rule, shards

RESULT = "c" * 40
PROOF = Evidence(claim="it was done", verdict=Verdict.PASS, command=("x",), exit_code=0, log_digest="0" * 64)
GOOD = CommitFacts(paths=("a.py", "b.py"))
FILES = tuple(FileChange(path=path, change=ChangeKind.MODIFIED) for path in GOOD.paths)
SPILL = Spill(blob="1" * 40, digest="d", count=2, size_bytes=1)


def spec(kind: ActionKind, **changes: Any) -> ActionSpec:
    known: dict[str, Any] = {
        "action_id": "a-1",
        "kind": kind,
        "step": "one.s0",
        "rule": 0,
        "contract": "rewrite.pattern@1",
        "pool": "executor",
        "input": {"result": RESULT, "proof": "rerun"},
        "base": BASE,
        "reach": Reach(),
        "time_limit_s": 60,
    }
    return ActionSpec(**known | changes)


def handoff(**changes: Any) -> Handoff:
    known: dict[str, Any] = {
        "action_id": "a-1",
        "attempt": 1,
        "nonce": "n",
        "outcome": Outcome.DONE,
        "base": BASE,
        "evidence": (PROOF,),
    }
    return Handoff(**known | changes)


def changed(**changes: Any) -> Handoff:
    return handoff(**{"result": RESULT, "files": FILES} | changes)


def reviewed(verdict: Verdict = Verdict.PASS, **gates: Any) -> Handoff:
    answered = dict.fromkeys(RESULT_GATES | {"rerun"}, "pass") | gates
    return handoff(verdict=verdict, output={"gates": {gate: said for gate, said in answered.items() if said}})


CHANGE, REVIEW, TEST = spec(ActionKind.CHANGE), spec(ActionKind.REVIEW), spec(ActionKind.TEST)


def test_an_honest_change_is_believed() -> None:
    assert refusals(CHANGE, changed(), GOOD) == ()
    assert refusals(spec(ActionKind.TWIN), changed(), GOOD) == ()
    assert refusals(CHANGE, handoff(outcome=Outcome.NO_CHANGE, evidence=()), CommitFacts()) == ()


def test_an_honest_failure_is_believed_whatever_it_cites() -> None:
    for outcome in set(Outcome) - {Outcome.DONE, Outcome.NO_CHANGE}:
        assert refusals(CHANGE, handoff(outcome=outcome, base="0" * 40, evidence=()), CommitFacts()) == ()


@pytest.mark.parametrize(
    ("told", "facts", "reason"),
    [
        (changed(base="d" * 40), GOOD, "it worked on dddddddddddd instead of bbbbbbbbbbbb"),
        (changed(result=None), GOOD, "it says done and names no result"),
        (changed(outcome=Outcome.NO_CHANGE), GOOD, "it says no_change and names a result"),
        (changed(files=FILES[:1]), GOOD, "it reports 1 changed files, the commits show 2"),
        (changed(files=()), GOOD, "it reports 0 changed files, the commits show 2"),
        (changed(), CommitFacts(), "its result changes nothing"),
        (changed(evidence=()), GOOD, "it gives no evidence"),
        (
            changed(files=(), spilled={"files": SPILL.model_copy(update={"count": 3})}),
            GOOD,
            "it reports 3 changed files, the commits show 2",
        ),
    ],
)
def test_a_change_that_the_commits_do_not_show_is_refused(
    told: Handoff, facts: CommitFacts, reason: str
) -> None:
    assert refusals(CHANGE, told, facts) == (reason,)


def test_every_finding_against_the_commit_is_a_reason_and_a_warning_is_none() -> None:
    found = CommitFacts(
        findings=(
            Finding(gate="scope", text="is outside the scope", path="x.py"),
            Finding(gate="commit", text="The result stands on nothing."),
            Finding(gate="commit", text="is long", severity=Severity.WARNING),
        ),
        paths=GOOD.paths,
    )

    assert refusals(CHANGE, changed(), found) == (
        "x.py: is outside the scope",
        "The result stands on nothing.",
    )


def test_what_grew_too_large_for_the_message_counts_as_told() -> None:
    told = changed(files=(), evidence=(), spilled={"files": SPILL, "evidence": SPILL})

    assert refusals(CHANGE, told, GOOD) == ()


def test_a_contract_that_changes_nothing_may_not_name_a_result() -> None:
    report = spec(ActionKind.CHANGE, changes_tree=False)

    assert refusals(report, handoff(evidence=()), CommitFacts()) == ()
    assert refusals(report, changed(), GOOD) == ("its contract changes nothing, and it names a result",)


def test_a_review_that_answers_for_every_gate_is_believed() -> None:
    assert refusals(REVIEW, reviewed(), CommitFacts()) == ()
    assert refusals(REVIEW, reviewed(Verdict.FAIL, parses="fail"), CommitFacts()) == ()


@pytest.mark.parametrize("gate", sorted(RESULT_GATES | {"rerun"}))
def test_a_review_that_leaves_a_gate_out_is_none(gate: str) -> None:
    answers = dict.fromkeys((RESULT_GATES | {"rerun"}) - {gate}, "pass")
    told = reviewed().model_copy(update={"output": {"gates": answers}})

    assert refusals(REVIEW, told, CommitFacts()) == (f"it does not answer for the gates {gate}",)


def test_a_review_cannot_pass_what_a_gate_does_not() -> None:
    assert refusals(REVIEW, reviewed(ruff="could_not_run"), CommitFacts()) == (
        "it passes although a gate does not",
    )


def test_a_review_needs_a_verdict_and_evidence() -> None:
    assert refusals(REVIEW, handoff(output={"gates": {}}), CommitFacts()) == ("it gives no verdict",)
    assert refusals(REVIEW, reviewed().model_copy(update={"evidence": ()}), CommitFacts()) == (
        "it gives no evidence",
    )


def test_where_nothing_was_changed_only_the_proof_is_asked_for() -> None:
    unchanged = spec(ActionKind.REVIEW, input={"result": None, "proof": "rerun"})
    told = handoff(verdict=Verdict.PASS, output={"gates": {"rerun": "pass"}})

    assert refusals(unchanged, told, CommitFacts()) == ()


def test_where_nothing_can_be_repeated_the_other_gates_are_the_proof() -> None:
    impure = spec(ActionKind.REVIEW, input={"result": RESULT, "proof": str(Proof.GATES)})

    assert refusals(impure, reviewed(rerun=None), CommitFacts()) == ()


@pytest.mark.parametrize("kind", [ActionKind.TEST, ActionKind.BASELINE, ActionKind.CANARY_TEST])
def test_tests_pass_only_with_command_exit_code_and_log(kind: ActionKind) -> None:
    passed = handoff(verdict=Verdict.PASS)
    weak = [
        PROOF.model_copy(update=without)
        for without in ({"command": ()}, {"exit_code": None}, {"log_digest": None})
    ]

    assert refusals(spec(kind), passed, CommitFacts()) == ()
    for evidence in [(), tuple(weak)]:
        assert refusals(spec(kind), passed.model_copy(update={"evidence": evidence}), CommitFacts()) == (
            "it passes without a command, an exit code and a log as evidence",
        )
    assert refusals(spec(kind), handoff(verdict=Verdict.FAIL, evidence=()), CommitFacts()) == ()
    assert refusals(spec(kind), handoff(), CommitFacts()) == ("it gives no verdict",)


def test_a_planner_has_to_give_a_plan() -> None:
    planner = spec(ActionKind.PLAN, rule=None)

    assert refusals(planner, handoff(output={"plan": {}}), CommitFacts()) == ()
    assert refusals(planner, handoff(outcome=Outcome.NO_CHANGE), CommitFacts()) == ("it gives no plan",)


# ---- plans -------------------------------------------------------------------------------------------------------

STATE = TaskState("t", rules=(RuleState(rule("one")), RuleState(rule("two", file_shardable=False))))


def planned(name: str, count: int, **changes: Any) -> PlannedRule:
    known: dict[str, Any] = {
        "rule": name,
        "contract": "rewrite.pattern@1",
        "input": {"match": name},
        "shardable": Shardable.FILE,
        "shards": shards(count),
    }
    return PlannedRule(**known | changes)


def plan(*rules: PlannedRule, revision: int = 1) -> Plan:
    return Plan(revision=revision, reason="as asked", rules=rules)


def test_a_plan_of_the_tasks_rules_in_shards_that_leave_nothing_out_is_taken() -> None:
    assert plan_faults(STATE, plan(planned("one", 3, canary=2), planned("two", 1)), 1) == ()


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ((planned("one", 1),), "the plan does not hold the recipe's rules in their order"),
        ((planned("two", 1), planned("one", 1)), "the plan does not hold the recipe's rules in their order"),
        (
            (planned("one", 1, contract="lint.fix@1"), planned("two", 1)),
            "the plan does not hold the recipe's rules in their order",
        ),
        (
            (planned("one", 1, input={"match": "evil"}), planned("two", 1)),
            "the plan changes the input of one",
        ),
        ((planned("one", 1), planned("two", 2)), "the plan cuts two, which cannot be cut"),
        (
            (planned("one", 1, shards=(Shard(start="a"),)), planned("two", 1)),
            "the shards of one overlap or leave paths out",
        ),
        (
            (planned("one", 1, shards=(Shard(stop="b"),)), planned("two", 1)),
            "the shards of one overlap or leave paths out",
        ),
        (
            (planned("one", 1, shards=(Shard(stop="b"), Shard(start="c"))), planned("two", 1)),
            "the shards of one overlap or leave paths out",
        ),
        (
            (planned("one", 1, shards=(Shard(stop="c"), Shard(start="b"))), planned("two", 1)),
            "the shards of one overlap or leave paths out",
        ),
        ((planned("one", 2, canary=2), planned("two", 1)), "the canary of one is not one of its shards"),
        ((planned("one", 2, canary=-1), planned("two", 1)), "the canary of one is not one of its shards"),
    ],
)
def test_a_plan_that_does_something_else_is_refused(rules: tuple[PlannedRule, ...], fault: str) -> None:
    assert plan_faults(STATE, plan(*rules), 1) == (fault,)


def test_a_plan_of_another_revision_is_refused() -> None:
    told = plan(planned("one", 1), planned("two", 1), revision=2)

    assert plan_faults(STATE, told, 1) == ("the plan is revision 2, asked was 1",)


def test_shards_in_descending_order_cover_nothing_twice() -> None:
    empty = planned("one", 1, shards=(Shard(stop="b"), Shard(start="b", stop="a"), Shard(start="a")))

    assert plan_faults(STATE, plan(empty, planned("two", 1)), 1) == (
        "the shards of one overlap or leave paths out",
    )

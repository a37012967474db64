"""choose(): which candidate to test, land or blame next."""

import pytest

from schemas.plan import PlannedRule
from schemas.scope import Shard
from schemas.words import Shardable, Verdict
from supervisor.saga.landing import QUICK_SUITE_MS, Blame, Choice, Land, TestThese, choose
from supervisor.saga.moves import RuleStatus
from supervisor.saga.state import Baseline, Candidate, RuleState, TaskState
from tests.unit.saga_world import rule

PASS, FAIL, NOT_RUN = Verdict.PASS, Verdict.FAIL, Verdict.COULD_NOT_RUN
QUICK, SLOW = QUICK_SUITE_MS, QUICK_SUITE_MS + 1


def chosen(
    *verdicts: Verdict | None,
    baseline: Verdict = PASS,
    duration_ms: int = QUICK,
    more_rules: bool = False,
    run_ahead: bool = True,
) -> Choice:
    """What follows of a chain c0, c1, ... with these verdicts; `more_rules`: another rule is still running."""
    chain = tuple(Candidate(at, f"c{at}", "base", verdict) for at, verdict in enumerate(verdicts))
    statuses = [RuleStatus.COMPOSED] * len(chain) + [RuleStatus.RUNNING] * more_rules
    rules = tuple(
        RuleState(
            rule(f"r{at}"),
            PlannedRule(
                rule=f"r{at}",
                contract="rewrite.pattern@1",
                input={},
                shardable=Shardable.FILE,
                shards=(Shard(),),
                run_ahead=run_ahead,
            ),
            status,
        )
        for at, status in enumerate(statuses)
    )
    known = Baseline(baseline, duration_ms=duration_ms)
    return choose(TaskState("t", rules=rules, chain=chain, baseline=known))


def names(choice: Choice) -> tuple[str, ...]:
    match choice:
        case Land(candidate) | Blame(candidate):
            return (type(choice).__name__, candidate.commit)
        case TestThese(commits):
            return ("TestThese", *commits)
        case None:
            return ()


def test_an_empty_chain_wants_nothing() -> None:
    assert chosen() is None


def test_where_the_suite_is_quick_every_candidate_is_tested() -> None:
    assert names(chosen(None, None)) == ("TestThese", "c0", "c1")
    assert names(chosen(None, None, more_rules=True)) == ("TestThese", "c0", "c1")


def test_where_it_is_slow_the_last_candidate_is_tested_once_no_rule_can_join() -> None:
    assert chosen(None, None, duration_ms=SLOW, more_rules=True) is None
    assert names(chosen(None, None, duration_ms=SLOW)) == ("TestThese", "c1")


def test_a_rule_that_may_not_be_run_ahead_of_is_not_kept_waiting() -> None:
    assert names(chosen(None, duration_ms=SLOW, more_rules=True, run_ahead=False)) == ("TestThese", "c0")


def test_a_pass_covers_everything_below_it() -> None:
    assert names(chosen(None, PASS, None)) == ("Land", "c1")
    assert names(chosen(PASS, None, PASS)) == ("Land", "c2")
    assert names(chosen(FAIL, PASS)) == ("Land", "c1")


@pytest.mark.parametrize("verdict", [FAIL, NOT_RUN, Verdict.NOTHING_RAN])
def test_the_first_red_candidate_on_a_green_base_is_to_blame(verdict: Verdict) -> None:
    assert names(chosen(verdict)) == ("Blame", "c0")
    assert names(chosen(verdict, None, None)) == ("Blame", "c0")


@pytest.mark.parametrize(
    ("verdicts", "next_test"),
    [
        ((None, FAIL), "c0"),
        ((None, None, FAIL), "c0"),
        ((None, None, None, FAIL), "c1"),
        ((None, None, None, None, None, None, None, FAIL), "c3"),
        ((None, None, FAIL, FAIL), "c0"),
    ],
)
def test_a_red_batch_is_halved(verdicts: tuple[Verdict | None, ...], next_test: str) -> None:
    assert names(chosen(*verdicts, duration_ms=SLOW)) == ("TestThese", next_test)


@pytest.mark.parametrize("baseline", [NOT_RUN, FAIL, Verdict.NOTHING_RAN])
def test_without_a_green_baseline_what_was_allowed_lands_untested(baseline: Verdict) -> None:
    assert names(chosen(None, None, baseline=baseline)) == ("Land", "c1")

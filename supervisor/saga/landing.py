"""Which candidate to test, land or blame next: one pure choice over the chain of untested commits.

Where the suite is quick every candidate is tested. Where it is slow the last one is, and a red batch is bisected by
rule. A pass covers everything below it; the first red one above the head is the culprit.
"""

from dataclasses import dataclass

from schemas.words import Verdict
from supervisor.saga.state import Candidate, TaskState, needed

# A suite up to this long runs after every rule; a slower one in batches.
QUICK_SUITE_MS = 20_000


@dataclass(frozen=True, slots=True)
class Land:
    """Move the head here; `untested` where no test could run and the user allowed it."""

    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Blame:
    """This rule's candidate is red on a green base."""

    candidate: Candidate


@dataclass(frozen=True, slots=True)
class TestThese:
    """These commits need a verdict."""

    __test__ = False  # not a test class

    commits: tuple[str, ...]


Choice = Land | Blame | TestThese | None


def choose(state: TaskState) -> Choice:
    """What to do with the chain now, or None: wait."""
    chain, baseline = state.chain, needed(state.baseline)
    if not chain:
        return None
    if baseline.verdict is not Verdict.PASS:
        return Land(chain[-1])
    passed = [candidate for candidate in chain if candidate.verdict is Verdict.PASS]
    if passed:
        return Land(passed[-1])
    red = next((index for index, one in enumerate(chain) if one.verdict is not None), None)
    if red == 0:
        return Blame(chain[0])
    if red is not None:
        return TestThese((chain[(red - 1) // 2].commit,))
    if baseline.duration_ms <= QUICK_SUITE_MS:
        return TestThese(tuple(candidate.commit for candidate in chain))
    held_up = any(not needed(state.rules[one.rule].planned).run_ahead for one in chain)
    if state.frontier is None or held_up:
        return TestThese((chain[-1].commit,))
    return None

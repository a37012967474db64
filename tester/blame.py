"""Who is to blame for a test that passed in the baseline and does not pass now? Nobody before it ran again.

First the failures alone, on the candidate and on the head: what fails again here and passes there is the
candidate's doing. What passes alone, or fails alone on the head too, may still hang on its neighbours (a test
that needs another one first, or is spoilt by it), so the rest is decided by whole runs: it passes on the
candidate now: flaky; it passes on the head but not here: blamed; it fails on both: the base's own trouble.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tester.results import Results
from tester.runner import Run, Runner


@dataclass(frozen=True, slots=True)
class Blame:
    """The new failures sorted out. `undecided` could not be run again, for the `reason`."""

    blamed: Mapping[str, str] = field(default_factory=dict)
    flaky: tuple[str, ...] = ()
    red_on_head: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    reason: str = ""
    runs: tuple[Run, ...] = ()


def new_failures(before: Results, after: Results) -> dict[str, str]:
    """The tests that passed before and did not now, each with what happened. A missing one counts as failed."""
    found = {}
    for name in sorted(before.passed() - after.passed()):
        case = after.cases.get(name)
        found[name] = "did not run" if case is None else f"{case.status.value}: {case.message}".rstrip(": ")
    return found


def assign_blame(
    runner: Runner, failures: Mapping[str, str], *, baseline: Results, candidate: str, head: str | None
) -> Blame:
    """Run the new failures again and sort them. Without a head, what fails twice on the candidate is blamed."""
    inquiry = _Inquiry(runner, baseline, candidate, head)
    if runner.can_narrow:
        alone = inquiry.alone(failures)
        # Whole runs collect the same names: what the head does not even have by that name is settled.
        if alone.blamed or alone.reason or inquiry.nameless_on_head >= failures.keys():
            return alone
    return inquiry.whole(failures)


class _Inquiry:
    """The runs of one question of blame, kept as evidence."""

    def __init__(self, runner: Runner, baseline: Results, candidate: str, head: str | None) -> None:
        self._runner = runner
        self._baseline = baseline
        self._candidate = candidate
        self._head = head
        self._runs: list[Run] = []
        # Names that the head does not have now, although it gave them to the baseline: they change by themselves.
        self.nameless_on_head: frozenset[str] = frozenset()

    def alone(self, failures: Mapping[str, str]) -> Blame:
        """Only the failures, on both commits; what this does not settle is left to whole runs."""
        again = self._run(self._candidate, only=failures)
        still = _not_passed(failures, again)
        if not still:
            return self._ended()
        if self._head is None:
            return self._ended(blamed={name: failures[name] for name in still}, flaky=_rest(failures, still))
        there = self._run(self._head, only=still)
        if there.results is not None:
            self.nameless_on_head = frozenset(still) - there.results.cases.keys()
        red_there = frozenset(_not_passed(still, there))
        blamed = {name: failures[name] for name in still if name not in red_there}
        return self._ended(blamed=blamed, flaky=_rest(failures, still), red_on_head=tuple(sorted(red_there)))

    def whole(self, failures: Mapping[str, str]) -> Blame:
        """The whole suite once more on the candidate and, for what fails again, on the head."""
        expected_s = self._baseline.duration_ms / 1000
        if not self._runner.budget.has_room_for(expected_s):
            return self._undecided(failures, "the time limit left no room to run the new failures again")
        again = self._run(self._candidate)
        if again.results is None:
            return self._undecided(failures, again.trouble)
        still = _not_passed(failures, again)
        flaky = _rest(failures, still)
        if not still:
            return self._ended(flaky=flaky)
        if self._head is None:
            return self._ended(blamed={name: failures[name] for name in still}, flaky=flaky)
        if not self._runner.budget.has_room_for(expected_s):
            return self._undecided(
                still, "the time limit left no room to run the new failures on the head", flaky
            )
        there = self._run(self._head)
        if there.results is None:
            return self._undecided(still, f"on the head: {there.trouble}", flaky)
        red_there = frozenset(_not_passed(still, there))
        blamed = {name: failures[name] for name in still if name not in red_there}
        return self._ended(blamed=blamed, flaky=flaky, red_on_head=tuple(sorted(red_there)))

    def _run(self, commit: str, *, only: Iterable[str] | None = None) -> Run:
        wanted = None if only is None else tuple(only)
        done = self._runner.run(commit, only=wanted, import_roots=self._baseline.import_roots)
        self._runs.append(done)
        return done

    def _ended(
        self,
        *,
        blamed: Mapping[str, str] | None = None,
        flaky: tuple[str, ...] = (),
        red_on_head: tuple[str, ...] = (),
    ) -> Blame:
        return Blame(blamed=blamed or {}, flaky=flaky, red_on_head=red_on_head, runs=tuple(self._runs))

    def _undecided(self, failures: Iterable[str], reason: str, flaky: tuple[str, ...] = ()) -> Blame:
        return Blame(undecided=tuple(failures), reason=reason, flaky=flaky, runs=tuple(self._runs))


def _not_passed(names: Iterable[str], run: Run) -> tuple[str, ...]:
    passed = frozenset() if run.results is None else run.results.passed()
    return tuple(name for name in names if name not in passed)


def _rest(names: Iterable[str], without: Iterable[str]) -> tuple[str, ...]:
    left_out = frozenset(without)
    return tuple(name for name in names if name not in left_out)

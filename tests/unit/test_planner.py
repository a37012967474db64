"""How the planner cuts: everything is in exactly one shard, the canary has sites, and revisions use what is known."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner.cutting import Sized, canary_of, cut, measured_rate
from planner.work import plan_rule
from schemas.scope import path_key
from workspace.view import DictView

PATHS = st.lists(st.text(alphabet="ab/.é", min_size=1, max_size=6), min_size=1, max_size=40, unique=True)


def rule(**changes: Any) -> dict[str, Any]:
    pattern = {"language": "python", "match": "old($A)", "replace": "new($A)"}
    return {"rule": "r", "contract": "rewrite.pattern@1", "input": pattern, "shardable": "file", **changes}


def view(files: int, size: int = 1_000_000) -> DictView:
    texts = {f"m{number:03d}.py": b"x = 1\n" * (size // 6) for number in range(files)}
    texts["m010.py"] = b"old(1)\n" + b"x = 1\n" * (size // 6)
    return DictView(texts)


@given(paths=PATHS, size=st.integers(1, 100), rate=st.integers(1, 200), where=st.integers(0, 39))
def test_every_path_lies_in_exactly_one_shard(paths: list[str], size: int, rate: int, where: int) -> None:
    files = [Sized(path, size) for path in sorted(paths, key=path_key)]
    canary = canary_of(files, files[where % len(files)].path, rate)

    made = cut(files, rate, canary=canary)

    assert made.shards[0].start == ""
    assert made.shards[-1].stop is None
    assert all(one.stop == after.start for one, after in pairwise(made.shards))
    assert all(sum(shard.holds(path) for shard in made.shards) == 1 for path in paths)
    assert made.canary is None or made.shards[made.canary] == canary


def test_the_canary_begins_at_the_first_file_with_a_site() -> None:
    planned, _ = plan_rule(rule(), view(40), [])

    assert planned.canary is not None
    assert planned.shards[planned.canary].start == "m010.py"
    assert planned.sites == 1


def test_a_small_repository_is_one_shard_without_canary() -> None:
    planned, _ = plan_rule(rule(), view(12, size=600), [])

    assert (len(planned.shards), planned.canary) == (1, None)


def test_a_rule_that_cannot_be_cut_is_one_shard() -> None:
    planned, _ = plan_rule(rule(shardable="whole"), view(40), [])

    assert (len(planned.shards), planned.canary) == (1, None)


def test_a_slow_canary_makes_smaller_shards_and_keeps_its_own_range() -> None:
    first, _ = plan_rule(rule(), view(40), [])
    again, notes = plan_rule(rule(), view(40), [{"rule": "r", "outcome": "kept", "wall_ms": 3_000}])

    assert len(again.shards) > len(first.shards)
    assert again.shards[again.canary or 0] == first.shards[first.canary or 0]
    assert notes[0].startswith("r: the canary took 3000 ms for ")


def test_a_shard_that_ran_out_of_time_is_cut_smaller() -> None:
    first, _ = plan_rule(rule(), view(40), [])
    again, notes = plan_rule(rule(), view(40), [{"rule": "r", "outcome": "time_limit"}])

    assert len(again.shards) >= 2 * len(first.shards)
    assert "ran out of time" in notes[0]


def test_nothing_runs_ahead_of_a_rule_whose_canary_failed_its_tests() -> None:
    planned, notes = plan_rule(rule(), view(40), [{"rule": "r", "outcome": "kept", "tests": "fail"}])

    assert not planned.run_ahead
    assert "the canary's tests failed" in notes[0]


def test_an_estimate_moves_by_a_bounded_factor() -> None:
    assert measured_rate(100.0, 10, 10_000_000) == 25.0
    assert measured_rate(100.0, 1_000_000, 160) == 400.0
    assert measured_rate(100.0, 0, 500) == 100.0

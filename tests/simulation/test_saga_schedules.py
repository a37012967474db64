"""Random schedules over a simulated fleet: whatever comes in whichever order, what lands is right, and it ends.

`ROLECALL_SIMULATION=big` runs many more, with fresh randomness; what fails prints as a short story.
"""

import os

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.simulation import invariants
from tests.simulation.script import RuleScript, Script, scripts
from tests.simulation.simulator import Simulator

_BIG = os.environ.get("ROLECALL_SIMULATION") == "big"
_BUDGET = settings(
    max_examples=20_000 if _BIG else 120,
    derandomize=not _BIG,
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example),
)


def schedules() -> st.SearchStrategy[list[int]]:
    """Numbers of two bytes each, of a length that is drawn first: lists of Hypothesis are mostly short."""
    lengths = st.sampled_from((20, 60, 150, 300))
    drawn = lengths.flatmap(lambda length: st.binary(min_size=2 * length, max_size=2 * length))
    return drawn.map(lambda data: [a << 8 | b for a, b in zip(data[::2], data[1::2], strict=True)])


def simulated(script: Script, schedule: list[int]) -> Simulator:
    world = Simulator(script)
    world.run(schedule)
    return world


@pytest.mark.timeout(0 if _BIG else 300)
@_BUDGET
@given(scripts(), schedules())
@example(Script((RuleScript("r0", ("0000", "0003")), RuleScript("r1", ("0000",)))), [])
def test_every_schedule_comes_to_rest_and_lands_only_what_is_right(
    script: Script, schedule: list[int]
) -> None:
    disturbed, quiet = simulated(script, schedule), simulated(script, [])

    if [(one.status, one.refusals) for one in disturbed.state.rules] == [
        (one.status, one.refusals) for one in quiet.state.rules
    ]:
        assert disturbed.state.head == quiet.state.head


def test_a_schedule_that_goes_wrong_is_told_as_a_short_story(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_rest(world: Simulator) -> None:
        raise AssertionError("something is wrong")

    monkeypatch.setattr(invariants, "at_rest", at_rest)

    with pytest.raises(AssertionError) as told:
        simulated(Script((RuleScript("r0", ("0000",)),)), [])

    lines = str(told.value).splitlines()
    assert lines[0] == "AssertionError: something is wrong"
    assert any("finishes r0.canary#1" in line for line in lines)
    assert len(lines) < 70

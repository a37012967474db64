"""The supervisor's clocks, faster: what takes seconds of silence in operation takes tenths in a test."""

import pytest


@pytest.fixture
def quick_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ticks and probes every twentieth of a second; workers (heartbeats of 0.2 s) are lost after a second."""
    monkeypatch.setattr("supervisor.loop.TICK_S", 0.05)
    monkeypatch.setattr("supervisor.fleet.SUSPECT_US", 700_000)
    monkeypatch.setattr("supervisor.fleet.LOST_US", 1_000_000)
    monkeypatch.setattr("supervisor.fleet.CLOCK_STEP_US", 300_000)
    monkeypatch.setattr("supervisor.saga.attempts.OUTAGE_GRACE_S", 1)

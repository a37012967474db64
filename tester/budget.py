"""The time that an action has, shared out between the runs of its tests."""

import time
from dataclasses import dataclass, replace

# What is kept back to read reports, store results and hand off before the action itself is stopped.
_RESERVE_S = 5.0


@dataclass(frozen=True, slots=True)
class Budget:
    """Ends at `deadline` (monotonic seconds); one run may take `run_limit_s` at most."""

    deadline: float
    run_limit_s: float

    @classmethod
    def starting_now(cls, total_s: float, *, run_limit_s: float) -> "Budget":
        """A budget for an action with this time limit that starts now."""
        reserve = min(_RESERVE_S, total_s / 10)
        return cls(time.monotonic() + total_s - reserve, run_limit_s)

    def tightened(self, run_limit_s: float) -> "Budget":
        """The same budget with a run limit that is not larger than this."""
        return replace(self, run_limit_s=min(self.run_limit_s, run_limit_s))

    def next_limit_s(self) -> float:
        """How long the next run may take; 0 when nothing is left."""
        return max(0.0, min(self.run_limit_s, self.deadline - time.monotonic()))

    def has_room_for(self, expected_s: float) -> bool:
        """True if a run that is expected to take so long (with half as much again) still fits."""
        return self.next_limit_s() >= min(self.run_limit_s, expected_s * 1.5)

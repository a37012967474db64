"""The frame of every handoff: which action it answers, how it ended, what it took."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from schemas.action import Action
from schemas.clock import now_us
from schemas.errors import RolecallError
from schemas.handoff import Cost, Failure, Handoff
from schemas.words import Outcome
from workspace.job import SandboxResult


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """When the work began, on the wall and on the processor (children included)."""

    started_at: int
    wall_s: float
    cpu_s: float

    @classmethod
    def started(cls) -> "Stopwatch":
        """Running from now on."""
        return cls(now_us(), time.monotonic(), _cpu_s())

    def answer(
        self, action: Action, *, outcome: Outcome, jobs: Iterable[SandboxResult] = (), **fields: Any
    ) -> Handoff:
        """The handoff of this action with these fields, and what it took until now, with these jobs in the sandbox."""
        ran = tuple(jobs)
        cost = Cost(
            wall_ms=round((time.monotonic() - self.wall_s) * 1000),
            cpu_ms=round((_cpu_s() - self.cpu_s) * 1000)
            + sum(max(0, one.cpu_ms - one.cpu_reaped_ms) for one in ran),
            cpu_is_whole=all(one.cpu_is_whole for one in ran),
        )
        return Handoff(
            action_id=action.action_id,
            attempt=action.attempt,
            nonce=action.nonce,
            base=action.base,
            outcome=outcome,
            cost=cost,
            started_at=self.started_at,
            ended_at=now_us(),
            **fields,
        )

    def failed(self, action: Action, error: RolecallError, *, outcome: Outcome, **fields: Any) -> Handoff:
        """The handoff of an action that an error of ours ended; its class is the code."""
        failure = Failure(code=type(error).__name__, message=error.message, suggestion=error.suggestion)
        return self.answer(action, outcome=outcome, error=failure, **fields)


def _cpu_s() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system

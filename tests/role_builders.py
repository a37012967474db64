"""Builders for tests of the role runtime: granted work, role specs, and workers that a test holds in its hand."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bus.api import Delivery
from bus.grants import SigningKey, sign
from bus.served import RoleSpec
from schemas.action import Action
from schemas.contracts import ContractDocument
from schemas.envelope import Envelope, Sender
from schemas.handoff import Handoff
from schemas.messages import ActionRequested
from schemas.words import Lane, Outcome

KEY = SigningKey.from_seed(b"\x07" * 32)
ENVIRONMENT = "test"
POOL = "executor"
BASE = "0" * 40
SUPERVISOR = Sender(role="supervisor", instance="host-1-1", version="0.1.0")
HOUR_US = 3_600_000_000

# Long enough for a slow machine; a test that waits so long has failed.
LIMIT_S = 20.0


def contract(
    name: str = "count.words", *, pure: bool = True, pool: str = POOL, longest_s: float = 900
) -> ContractDocument:
    return ContractDocument.model_validate(
        {
            "name": name,
            "version": 1,
            "title": "Count words",
            "description": "Counts.",
            "pool": pool,
            "changes": "nothing",
            "time_limit_s": {"default": min(60, longest_s), "longest": longest_s},
            "side_effects": "None.",
            "pure": pure,
            "shardable": "file",
            "input": {
                "type": "object",
                "additionalProperties": False,
                "required": ["text"],
                "properties": {"text": {"type": "string"}},
            },
            "output": {"type": "object", "properties": {"words": {"type": "integer"}}},
        }
    )


PURE = contract()
IMPURE = contract("tell.people", pure=False)
SPEC = RoleSpec(role="counter", pool=POOL, contracts=(PURE, IMPURE), engines={"wc": "1"}, slots=1)


def action(number: int = 1, *, of: ContractDocument = PURE, attempt: int = 1, **changes: Any) -> Action:
    told = {
        "task": "0198c0de-0000-7000-8000-000000000001",
        "action_id": f"action-{number}",
        "step": f"count/{number}",
        "contract": of.ref,
        "input": {"text": f"{number} words"},
        "base": BASE,
        "attempt": attempt,
        "nonce": f"nonce-of-{number}-{attempt}-0123456789",
        "pool": POOL,
        "environment": ENVIRONMENT,
        "time_limit_s": 60.0,
    }
    return Action.model_validate(told | changes)


def granted(one: Action, *, key: SigningKey = KEY, start_by: int = 2**60) -> ActionRequested:
    return sign(one, start_by, key)


def work_envelope(one: Action, body: ActionRequested | None = None, **changes: Any) -> Envelope:
    told = {
        "environment": ENVIRONMENT,
        "message_id": f"work-{one.action_id}-{one.attempt}",
        "correlation_id": one.task,
        "causation_id": "what-caused-it",
        "kind": "action.requested",
        "sender": SUPERVISOR,
        "created_at": 1_000_000,
        "attempt": one.attempt,
        "lane": Lane.STANDING,
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "body": (body or granted(one)).model_dump(),
    }
    return Envelope.model_validate(told | changes)


def delivered(envelope: Envelope | None, fault: str | None = None) -> Delivery:
    body = ActionRequested.model_validate(envelope.body) if envelope and not fault else None
    return Delivery(
        envelope=envelope,
        raw=b"",
        fault=fault,
        queue=f"test.work.{POOL}",
        key=POOL,
        redelivered=False,
        received_at=2_000_000,
        body=body,
    )


def done(one: Action, **changes: Any) -> Handoff:
    told = {
        "action_id": one.action_id,
        "attempt": one.attempt,
        "nonce": one.nonce,
        "outcome": Outcome.NO_CHANGE,
        "base": one.base,
        "output": {"words": 2},
    }
    return Handoff.model_validate(told | changes)


@dataclass(eq=False)
class Job:
    """One run of a worker, in the test's hand."""

    slot: int
    action: Action
    note: Callable[[str], None]
    result: "asyncio.Future[Handoff]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    killed: bool = False

    def finish(self, handoff: Handoff | None = None) -> None:
        self.result.set_result(handoff or done(self.action))

    def fail(self, error: Exception) -> None:
        self.result.set_exception(error)


class HeldWorkers:
    """Workers whose every run waits until the test lets it end."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.jobs: list[Job] = []
        self.is_closed = False
        self._deaf = deaf
        self._more = asyncio.Condition()

    async def run(self, slot: int, action: Action, on_note: Callable[[str], None]) -> Handoff:
        job = Job(slot, action, on_note)
        self.jobs.append(job)
        async with self._more:
            self._more.notify_all()
        while True:
            try:
                return await asyncio.shield(job.result)
            except asyncio.CancelledError:
                job.killed = True
                if not self._deaf:
                    raise

    async def close(self) -> None:
        self.is_closed = True

    async def started(self, count: int) -> Job:
        """The job number `count` (from 1), once it runs."""
        async with asyncio.timeout(LIMIT_S), self._more:
            await self._more.wait_for(lambda: len(self.jobs) >= count)
        return self.jobs[count - 1]

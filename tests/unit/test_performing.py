"""From an accepted attempt to its handoff, whatever the worker does."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bus.attempts import Attempt, Stop
from bus.performing import LONGEST_FAILURE_TEXT, Patience, Performance, perform
from bus.served import serve_contracts
from bus.workers import InLoopWorkers, Workers
from schemas.action import Action
from schemas.contracts import ContractDocument
from schemas.errors import ContractError, WorkerLostError, WorkspaceError
from schemas.handoff import Failure, Handoff
from schemas.words import Outcome
from tests.role_builders import (
    IMPURE,
    LIMIT_S,
    PURE,
    SPEC,
    HeldWorkers,
    action,
    contract,
    done,
    work_envelope,
)


def attempt_of(one: Action, of: ContractDocument = PURE) -> Attempt:
    served = serve_contracts(replace(SPEC, contracts=(of,)))[of.ref]
    return Attempt(one, served, work_envelope(one), received_at=0)


async def performed(
    attempt: Attempt, workers: Workers, *, lease_wait_s: float = 60, kill_wait_s: float = 60
) -> Performance:
    async with asyncio.timeout(LIMIT_S):
        return await perform(attempt, workers, 0, Patience(lease_s=lease_wait_s, kill_s=kill_wait_s))


async def handoff_of(handle: Callable[..., Any], attempt: Attempt | None = None) -> Handoff:
    return (await performed(attempt or attempt_of(action()), InLoopWorkers(handle))).handoff


def code_of(handoff: Handoff) -> str:
    assert handoff.error is not None
    return handoff.error.code


async def test_the_workers_handoff_comes_back_under_the_granted_names_and_with_its_times() -> None:
    async def handle(one: Action, note: Callable[[str], None]) -> Handoff:
        note("half way")
        return done(one, action_id="another", attempt=9, nonce="forged-nonce-0123456789")

    attempt = attempt_of(action())
    handoff = await handoff_of(handle, attempt)

    assert handoff.ended_at >= handoff.started_at > 0
    assert handoff.model_copy(update={"started_at": 0, "ended_at": 0, "cost": done(action()).cost}) == done(
        action()
    )
    assert attempt.note == "half way"


@pytest.mark.parametrize(
    ("error", "outcome", "code", "words"),
    [
        (
            WorkerLostError("The child was killed.", last_lines="MemoryError\n"),
            Outcome.FAILED,
            "worker_lost",
            "MemoryError",
        ),
        (WorkspaceError("The disk is full."), Outcome.COULD_NOT_RUN, "could_not_run", "disk is full"),
        (ContractError("The pattern does not parse."), Outcome.FAILED, "contract", "does not parse"),
        (ZeroDivisionError("by zero"), Outcome.FAILED, "worker_failed", "ZeroDivisionError: by zero"),
        (RuntimeError("at amqp://u:s3cr3t@h/"), Outcome.FAILED, "worker_failed", "[redacted]"),
    ],
)
async def test_an_error_becomes_a_handoff_with_a_stable_code(
    error: Exception, outcome: Outcome, code: str, words: str
) -> None:
    async def handle(_action: Action, _note: object) -> Handoff:
        raise error

    handoff = await handoff_of(handle)

    assert (handoff.outcome, code_of(handoff)) == (outcome, code)
    assert handoff.error is not None
    assert words in handoff.error.message


async def test_a_failure_text_is_bounded_and_keeps_the_end_of_stderr() -> None:
    async def handle(_action: Action, _note: object) -> Handoff:
        raise WorkerLostError("The child was killed.", last_lines="x" * 100_000 + "\nthe last words")

    handoff = await handoff_of(handle)

    assert handoff.error is not None
    assert len(handoff.error.message) <= LONGEST_FAILURE_TEXT
    assert handoff.error.message.endswith("the last words")


async def test_work_over_its_time_limit_is_killed_and_fails() -> None:
    workers = HeldWorkers()

    performance = await performed(attempt_of(action(time_limit_s=0.01)), workers)

    assert (performance.handoff.outcome, code_of(performance.handoff)) == (Outcome.FAILED, "time_limit")
    assert not performance.handoff.cost.cpu_is_whole
    assert workers.jobs[0].killed
    assert performance.straggler is None


async def test_the_contracts_longest_time_bounds_what_the_action_says() -> None:
    short = contract("count.fast", longest_s=0.01)

    performance = await performed(attempt_of(action(of=short, time_limit_s=3600), short), HeldWorkers())

    assert code_of(performance.handoff) == "time_limit"


async def test_a_stopped_attempt_is_killed_and_ends_as_the_order_says() -> None:
    workers, attempt = HeldWorkers(), attempt_of(action())
    running = asyncio.create_task(performed(attempt, workers))
    job = await workers.started(1)

    attempt.end_with(Stop(Outcome.CANCELED, Failure(code="stopped", message="the user changed their mind")))
    attempt.end_with(Stop(Outcome.FAILED, Failure(code="later", message="a second reason")))
    performance = await running

    assert job.killed
    assert (performance.handoff.outcome, code_of(performance.handoff)) == (Outcome.CANCELED, "stopped")


async def test_a_worker_that_does_not_die_holds_up_neither_the_handoff_nor_the_next_order() -> None:
    workers = HeldWorkers(deaf=True)

    performance = await performed(attempt_of(action(time_limit_s=0.01)), workers, kill_wait_s=0.01)

    assert code_of(performance.handoff) == "time_limit"
    assert performance.straggler is not None
    workers.jobs[0].finish()
    await asyncio.wait({performance.straggler}, timeout=LIMIT_S)


async def test_cancelling_kills_the_work_and_gives_no_handoff() -> None:
    workers = HeldWorkers()
    running = asyncio.create_task(performed(attempt_of(action()), workers))
    job = await workers.started(1)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert job.killed


async def test_impure_work_starts_only_with_its_lease() -> None:
    workers, attempt = HeldWorkers(), attempt_of(action(of=IMPURE), IMPURE)
    running = asyncio.create_task(performed(attempt, workers))
    for _ in range(10):
        await asyncio.sleep(0)
    started_before = len(workers.jobs)

    attempt.leased.set()
    (await workers.started(1)).finish()

    assert started_before == 0
    assert (await running).handoff.outcome is Outcome.NO_CHANGE


async def test_impure_work_without_a_lease_is_given_up_after_a_while() -> None:
    workers = HeldWorkers()

    performance = await performed(attempt_of(action(of=IMPURE), IMPURE), workers, lease_wait_s=0.01)

    assert (performance.handoff.outcome, code_of(performance.handoff)) == (
        Outcome.COULD_NOT_RUN,
        "lease_not_granted",
    )
    assert workers.jobs == []


async def test_an_order_to_stop_reaches_work_that_waits_for_its_lease() -> None:
    workers, attempt = HeldWorkers(), attempt_of(action(of=IMPURE), IMPURE)
    attempt.end_with(Stop(Outcome.CANCELED, Failure(code="stopped", message="x")))
    attempt.leased.set()

    performance = await performed(attempt, workers)

    assert performance.handoff.outcome is Outcome.CANCELED
    assert workers.jobs == []


async def test_an_output_that_breaks_its_contract_fails_with_what_is_wrong() -> None:
    async def handle(one: Action, _note: object) -> Handoff:
        return done(one, output={"words": "many"})

    handoff = await handoff_of(handle)

    assert (handoff.outcome, code_of(handoff)) == (Outcome.FAILED, "output_refused")


async def test_a_worker_that_returns_no_handoff_fails() -> None:
    async def handle(_action: Action, _note: object) -> Any:
        return "fine!"

    handoff = await handoff_of(handle)

    assert (handoff.outcome, code_of(handoff)) == (Outcome.FAILED, "worker_failed")

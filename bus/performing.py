"""perform(attempt): from an accepted attempt to its handoff, whatever happens in between.

Rules: an impure action waits for its lease, and not for ever; the time limit is kept here, whatever the worker does;
a worker that dies, fails or answers nonsense gives a handoff with a stable error code; and the handoff names the
attempt that was granted, whoever wrote it.
"""

import asyncio
from dataclasses import dataclass

from bus.attempts import Attempt, Stage, Stop
from bus.redaction import redact_handoff
from bus.workers import Workers
from schemas.action import Action
from schemas.clock import now_us as wall_clock_us
from schemas.errors import ContractError, RolecallError, WorkerLostError
from schemas.handoff import Cost, Failure, Handoff
from schemas.validation import explain
from schemas.words import Outcome

# Failure texts travel in messages and are shown whole: the end of a traceback fits.
LONGEST_FAILURE_TEXT = 2_000


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the runtime waits, in seconds.

    `lease_s` for the lease of an impure action, `kill_s` for a killed worker to be gone, `drain_s` for what runs to
    finish when the process leaves, `farewell_s` for the last handoffs and the goodbye after that.
    """

    lease_s: float = 60.0
    kill_s: float = 10.0
    drain_s: float = 30.0
    farewell_s: float = 15.0


@dataclass(frozen=True, slots=True)
class Performance:
    """How an attempt ended. `straggler` is a worker that did not end when told to; its slot is not free yet."""

    handoff: Handoff
    straggler: "asyncio.Task[Handoff] | None" = None


async def perform(attempt: Attempt, workers: Workers, slot: int, patience: Patience) -> Performance:
    """Run an accepted attempt in a slot. Cancelling this kills the work and gives no handoff."""
    started_us = wall_clock_us()
    if (
        not attempt.contract.pure
        and (refusal := await _wait_for_lease(attempt, patience.lease_s)) is not None
    ):
        return Performance(_finished(ended(attempt.action, refusal), attempt.action, started_us))
    attempt.stage, attempt.since = Stage.RUNNING, started_us
    limit_s = min(attempt.action.time_limit_s, attempt.contract.time_limit_s.longest)
    run = asyncio.create_task(workers.run(slot, attempt.action, attempt.take_note), name=f"work-{slot}")
    stopping = asyncio.create_task(attempt.stopping.wait())
    try:
        await asyncio.wait({run, stopping}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        cut_short = not run.done()
        if cut_short:
            await _kill(run, patience.kill_s)
    if cut_short:
        handoff = _cut_off(attempt.action, attempt.stop or _out_of_time(limit_s))
    else:
        handoff = _result(attempt, run)
    return Performance(_finished(handoff, attempt.action, started_us), None if run.done() else run)


def ended(action: Action, stop: Stop) -> Handoff:
    """The handoff of an attempt that brought no result of its own."""
    failure = stop.failure.model_copy(update={"message": _short(stop.failure.message)})
    return Handoff(
        action_id=action.action_id,
        attempt=action.attempt,
        nonce=action.nonce,
        outcome=stop.outcome,
        base=action.base,
        error=failure,
    )


def _cut_off(action: Action, stop: Stop) -> Handoff:
    """The same of one that ran: what it took of the processors went with its worker."""
    return ended(action, stop).model_copy(update={"cost": Cost(cpu_is_whole=False)})


async def _wait_for_lease(attempt: Attempt, wait_s: float) -> Stop | None:
    waits = {asyncio.create_task(attempt.leased.wait()), asyncio.create_task(attempt.stopping.wait())}
    try:
        await asyncio.wait(waits, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()
    if attempt.stop is not None:
        return attempt.stop
    if attempt.leased.is_set():
        return None
    message = f"{attempt.contract.ref} has effects outside the hub, and its lease was not granted within {wait_s:g} s."
    return Stop(
        Outcome.COULD_NOT_RUN,
        Failure(code="lease_not_granted", message=message, suggestion="It is tried again."),
    )


async def _kill(run: "asyncio.Task[Handoff]", wait_s: float) -> None:
    run.cancel()
    await asyncio.wait({run}, timeout=wait_s)
    if run.done() and not run.cancelled():
        run.exception()  # what a killed worker still says is not news, but asyncio wants it taken


def _out_of_time(limit_s: float) -> Stop:
    message = f"The work took longer than its limit of {limit_s:g} s and was killed."
    suggestion = "Cut the work smaller, or give it more time in its contract."
    return Stop(Outcome.FAILED, Failure(code="time_limit", message=message, suggestion=suggestion))


def _result(attempt: Attempt, run: "asyncio.Task[Handoff]") -> Handoff:
    action = attempt.action
    if run.cancelled():
        return _cut_off(
            action,
            Stop(Outcome.FAILED, Failure(code="worker_lost", message="The worker gave up its work unasked.")),
        )
    error = run.exception()
    if error is None:
        return _checked(attempt, run.result())
    return _cut_off(action, _stop_for(error))


def _stop_for(error: BaseException) -> Stop:
    match error:
        case WorkerLostError():
            # The end of stderr says most, so it is the part that is kept.
            room = max(0, LONGEST_FAILURE_TEXT - len(error.message) - 20)
            tail = (
                f" Its last lines: {error.last_lines[-room:].strip()}"
                if error.last_lines.strip() and room
                else ""
            )
            failure = Failure(code="worker_lost", message=error.message + tail, suggestion=error.suggestion)
            return Stop(Outcome.FAILED, failure)
        case ContractError():
            return Stop(
                Outcome.FAILED, Failure(code="contract", message=error.message, suggestion=error.suggestion)
            )
        case RolecallError():
            failure = Failure(code="could_not_run", message=error.message, suggestion=error.suggestion)
            return Stop(Outcome.COULD_NOT_RUN, failure)
        case _:
            message = f"The worker failed with {type(error).__name__}: {error}"
            return Stop(
                Outcome.FAILED,
                Failure(code="worker_failed", message=message, suggestion="Its log has the traceback."),
            )


def _checked(attempt: Attempt, handoff: object) -> Handoff:
    """The worker's handoff, or one that says in which way it breaks the contract."""
    output = attempt.served.output
    if not isinstance(handoff, Handoff):
        message = f"The worker returned {type(handoff).__name__} where a Handoff belongs."
        return _cut_off(attempt.action, Stop(Outcome.FAILED, Failure(code="worker_failed", message=message)))
    if handoff.outcome not in (Outcome.DONE, Outcome.NO_CHANGE) or "output" in handoff.spilled:
        return handoff
    if output.accepts(handoff.output):
        return handoff
    message = f"The output does not fit {attempt.contract.ref}: {explain(output.schema, handoff.output)}"
    return _cut_off(attempt.action, Stop(Outcome.FAILED, Failure(code="output_refused", message=message)))


def _finished(handoff: Handoff, action: Action, started_us: int) -> Handoff:
    """The handoff with what the runtime knows better than the worker, and without secrets in its texts."""
    now_us = wall_clock_us()
    wall_ms = handoff.cost.wall_ms or max(0, now_us - started_us) // 1_000
    return redact_handoff(handoff).model_copy(
        update={
            "action_id": action.action_id,
            "attempt": action.attempt,
            "nonce": action.nonce,
            "started_at": handoff.started_at or started_us,
            "ended_at": handoff.ended_at or now_us,
            "cost": Cost.model_validate(handoff.cost.model_dump() | {"wall_ms": wall_ms}),
        }
    )


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_FAILURE_TEXT else text[: LONGEST_FAILURE_TEXT - 3] + "..."

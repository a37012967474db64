"""One action and its attempts: dispatch, holders, loss, failure, end.

The same attempt can reach two workers, so an attempt is lost only when all its holders are. Of a pure action the
first valid handoff wins, from any attempt; an impure one runs only for its first holder, under `lease.granted`.
"""

from hashlib import blake2b
from hmac import compare_digest

from schemas.words import Outcome
from supervisor.saga import events as ev
from supervisor.saga.commands import Dispatch, GrantLease, StopAction
from supervisor.saga.messages import Accept
from supervisor.saga.moves import ActionStatus
from supervisor.saga.state import ActionSpec, ActionState
from supervisor.saga.turn import Turn

# Work messages live this long in a queue; what was not accepted by then is dispatched again.
DISPATCH_TTL_S = 300
# A worker ends an action at its time limit itself; the supervisor waits this much longer for the report.
OVERDUE_GRACE_S = 60
# After an outage nobody is given up before everybody had the time of a full lease to be heard again.
OUTAGE_GRACE_S = 20
# Back-off after a failure: doubled each time, up to the longest.
RETRY_FIRST_S = 1
RETRY_LONGEST_S = 30
SECOND_US = 1_000_000


def nonce_of(secret: str, action_id: str, attempt: int) -> str:
    """The nonce of an attempt: derived, so that replay is exact, and keyed, so that nobody can guess it."""
    return blake2b(f"{action_id}:{attempt}".encode(), key=secret.encode()[:64], digest_size=16).hexdigest()


def derived_id(*parts: str) -> str:
    """An action id from what it is: the same over attempts, restarts and replays."""
    return "a-" + blake2b("\0".join(parts).encode(), digest_size=12).hexdigest()


def open_action(turn: Turn, spec: ActionSpec) -> None:
    """Put an action among those that wait for a slot, unless it is there already."""
    if spec.action_id not in turn.state.actions:
        turn.happen(ev.ActionOpened(at=turn.at, spec=spec))


def dispatch(turn: Turn, action_id: str) -> None:
    """Send the next attempt of a ready action to its pool."""
    action = turn.state.actions[action_id]
    attempt = action.attempt + 1
    nonce = nonce_of(turn.state.secret, action_id, attempt)
    due = turn.at + DISPATCH_TTL_S * SECOND_US
    turn.happen(ev.ActionDispatched(at=turn.at, action_id=action_id, attempt=attempt, nonce=nonce, due=due))
    turn.order(Dispatch(action.spec, attempt, nonce, due))


def hold(turn: Turn, message: Accept) -> None:
    """An instance accepted: it becomes a holder, or is told to stop. Who cites another nonce is not answered."""
    action_id, attempt, instance = message.action_id, message.attempt, message.instance
    action = turn.state.actions.get(action_id)
    if action is None:
        if message.pool:  # else its next heartbeat brings the order
            turn.order(StopAction(message.pool, instance, action_id, attempt, "this action is over"))
        return
    holder, spec = (attempt, instance), action.spec
    if not knows(turn, action, attempt, message.nonce) or holder in action.handed_off:
        return
    if holder in action.holders:  # it says so again: the lease may not have reached it
        if not spec.pure:
            turn.order(GrantLease(spec.pool, instance, action_id, attempt, message.nonce))
        return
    if not spec.pure and action.holders:
        turn.order(StopAction(spec.pool, instance, action_id, attempt, "another instance holds the lease"))
        return
    due = turn.at + int((spec.time_limit_s + OVERDUE_GRACE_S) * SECOND_US)
    turn.happen(ev.ActionHeld(at=turn.at, action_id=action_id, attempt=attempt, instance=instance, due=due))
    if not spec.pure:
        turn.order(GrantLease(spec.pool, instance, action_id, attempt, message.nonce))


def lose_holder(
    turn: Turn, action_id: str, attempt: int, instance: str, reason: str, *, handed_off: bool = False
) -> bool:
    """An instance holds the attempt no longer. True if it was the last holder: the attempt is lost."""
    action = turn.state.actions.get(action_id)
    if action is None or (attempt, instance) not in action.holders:
        return False
    turn.happen(
        ev.LeaseEnded(
            at=turn.at,
            action_id=action_id,
            attempt=attempt,
            instance=instance,
            reason=reason,
            handed_off=handed_off,
        )
    )
    return not turn.state.actions[action_id].holders


def knows(turn: Turn, action: ActionState, attempt: int, nonce: str) -> bool:
    """True if the nonce is the one that this attempt was given."""
    if not 1 <= attempt <= action.attempt:
        return False
    return compare_digest(nonce, nonce_of(turn.state.secret, action.spec.action_id, attempt))


def fail_attempt(
    turn: Turn,
    action_id: str,
    *,
    attempt: int,
    code: str,
    message: str,
    instance: str = "",
    wait: bool = True,
) -> bool:
    """Record a failed attempt and make the action ready again. False if it has had its last attempt.

    The same failure twice is a loop: trying a third time teaches nothing.
    """
    action = turn.state.actions[action_id]
    limits = turn.state.request.limits if turn.state.request else None
    failures = (*action.failures, (code, message))
    if _loops(failures) or (limits is not None and len(failures) >= limits.attempts_per_step):
        return False
    back_off_s = min(RETRY_FIRST_S * 2 ** (len(failures) - 1), RETRY_LONGEST_S) if wait else 0
    _stop_holders(turn, action, "the attempt failed elsewhere", but=instance)
    turn.happen(
        ev.AttemptFailed(
            at=turn.at,
            action_id=action_id,
            attempt=attempt,
            code=code,
            message=message,
            instance=instance,
            retry_at=turn.at + back_off_s * SECOND_US,
        )
    )
    return True


def end_action(
    turn: Turn,
    action_id: str,
    outcome: Outcome,
    *,
    attempt: int = 0,
    instance: str = "",
    reason: str = "",
    message_id: str = "",
) -> None:
    """The action is over; whoever else holds it is told to stop."""
    action = turn.state.actions[action_id]
    _stop_holders(turn, action, reason or "another attempt finished first", but=instance)
    turn.happen(
        ev.ActionEnded(
            at=turn.at,
            action_id=action_id,
            attempt=attempt or action.attempt,
            outcome=outcome,
            instance=instance,
            reason=reason,
            message_id=message_id,
        )
    )


def is_overdue(action: ActionState, at: int, steady_since: int) -> bool:
    """True if the present wait of a dispatched or running action is over, and its worker could have said so."""
    due = max(action.due, steady_since + OUTAGE_GRACE_S * SECOND_US)
    return action.status in (ActionStatus.DISPATCHED, ActionStatus.RUNNING) and at >= due


def _loops(failures: tuple[tuple[str, str], ...]) -> bool:
    return len(failures) >= 2 and failures[-1] == failures[-2] and failures[-1][0] not in _NOT_ITS_FAULT


# Codes that say something about a worker or its way here, not about the work: they count as attempts, not as a loop.
_NOT_ITS_FAULT = frozenset(
    {"lost", "not_accepted", "expired", "stopped", "worker_left", "lease_not_granted", "contract_not_served"}
)


def _stop_holders(turn: Turn, action: ActionState, reason: str, *, but: str) -> None:
    for attempt, instance in sorted(action.holders):
        if instance != but:
            turn.order(StopAction(action.spec.pool, instance, action.spec.action_id, attempt, reason))

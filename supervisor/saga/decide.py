"""decide(state, message): the whole saga in one pure function.

No clock, no randomness, no I/O: time arrives in the message, and ids are derived from the state. Returns what
happened (events, already applied to the returned state) and what is to be done (commands).
"""

from dataclasses import dataclass
from typing import assert_never

from schemas.words import TaskStatus
from supervisor.saga import attempts, specs
from supervisor.saga import events as ev
from supervisor.saga.commands import Command
from supervisor.saga.course import advance, composed, drop_rule, end_task, head_moved
from supervisor.saga.messages import (
    Accept,
    Cancel,
    ComposeDone,
    Deliver,
    HandOff,
    HeadDone,
    LoseHolder,
    Message,
    Slots,
    Submit,
    Tick,
)
from supervisor.saga.moves import ActionStatus, Phase, RuleStatus, StepStatus
from supervisor.saga.outcomes import give_up, open_step, take_handoff
from supervisor.saga.state import StepState, TaskState, needed
from supervisor.saga.turn import Turn


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one message."""

    state: TaskState
    events: tuple[ev.Event, ...]
    commands: tuple[Command, ...]


def decide(state: TaskState, message: Message) -> Decision:
    """What follows from `message` in `state`."""
    turn = Turn(state, message.at)
    if state.status is TaskStatus.SUBMITTED:
        if isinstance(message, Submit):
            _submit(turn, message)
    elif state.status.is_final:
        _after_the_end(turn, message)
    else:
        _receive(turn, message)
    advance(turn)
    return Decision(turn.state, tuple(turn.events), tuple(turn.commands))


def _receive(turn: Turn, message: Message) -> None:
    match message:
        case Submit():
            pass  # the same request again: the task is known
        case Cancel(reason=reason):
            end_task(turn, f"canceled: {reason}", TaskStatus.CANCELED)
        case Deliver():
            _deliver(turn, message)
        case Slots():
            _fill_slots(turn, message)
        case Accept():
            attempts.hold(turn, message.action_id, message.attempt, message.nonce, message.instance)
        case HandOff():
            take_handoff(turn, message)
        case LoseHolder():
            _lose(turn, message)
        case Tick():
            _tick(turn, message)
        case ComposeDone():
            _compose_done(turn, message)
        case HeadDone():
            _head_done(turn, message)
        case _:
            assert_never(message)


def _submit(turn: Turn, message: Submit) -> None:
    if message.request is None or message.refused:
        reason = message.refused or "the request could not be read"
        turn.happen(ev.TaskRejected(at=turn.at, reason=reason, request=message.request))
        return
    turn.happen(
        ev.TaskAccepted(
            at=turn.at,
            request=message.request,
            rules=message.rules,
            plan_contract=needed(message.plan_contract),
            review_contract=needed(message.review_contract),
            test_contract=needed(message.test_contract),
            secret=message.secret,
        )
    )


def _after_the_end(turn: Turn, message: Message) -> None:
    """A task that ended still answers: who accepts its work is told to stop, a delivery is noted."""
    match message:
        case Deliver():
            _deliver(turn, message)
        case Accept():
            attempts.hold(turn, message.action_id, message.attempt, message.nonce, message.instance)
        case HandOff():
            take_handoff(turn, message)
        case _:
            pass


def _deliver(turn: Turn, message: Deliver) -> None:
    if turn.state.delivered != message.branch:
        turn.happen(
            ev.BranchDelivered(at=turn.at, branch=message.branch, commit=message.commit, by=message.by)
        )


def _fill_slots(turn: Turn, message: Slots) -> None:
    left = message.count
    for action_id in tuple(turn.state.ready.get(message.pool, ())):
        if left <= 0 or _over_the_limit(turn):
            return
        action = turn.state.actions.get(action_id)
        if action is not None and action.status is ActionStatus.READY and action_id not in turn.state.delayed:
            attempts.dispatch(turn, action_id)
            left -= 1
    while left > 0 and not _over_the_limit(turn):
        opened = _start_next_shard(turn, message.pool)
        if opened is None:
            return
        for action_id in opened:
            attempts.dispatch(turn, action_id)
        left -= len(opened)


def _start_next_shard(turn: Turn, pool: str) -> tuple[str, ...] | None:
    """Open the next step of the running rule, if it is this pool's; the ids of its actions, None if there is none."""
    state = turn.state
    index = state.frontier
    if state.phase is not Phase.LANDING or index is None:
        return None
    rule = state.rules[index]
    if (
        rule.status is not RuleStatus.RUNNING
        or rule.request.contract.pool != pool
        or rule.cursor >= rule.shards
    ):
        return None
    step = StepState(specs.step_name(rule, rule.cursor, canary=False), index, rule.cursor, rule.base)
    remembered = state.remembered.get(specs.memory_key(state, step)) if state.remembered else None
    if remembered is not None:
        turn.happen(
            ev.StepOpened(
                at=turn.at, step=step.step, rule=index, shard=step.shard, base=step.base, canary=False
            )
        )
        turn.happen(ev.StepEnded(at=turn.at, step=step.step, status=StepStatus.KEPT, from_memory=remembered))
        return ()
    before = set(state.actions)
    open_step(turn, step)
    return tuple(action_id for action_id in turn.state.actions if action_id not in before)


def _over_the_limit(turn: Turn) -> bool:
    state = turn.state
    if state.status.is_final:
        return True
    limit = state.asked.limits.actions
    if state.spent_actions < limit:
        return False
    end_task(
        turn, f"the limit of {limit} actions is used up (raise it with --limit actions=N)", TaskStatus.FAILED
    )
    return True


def _lose(turn: Turn, message: LoseHolder) -> None:
    if attempts.lose_holder(turn, message.action_id, message.attempt, message.instance, message.reason):
        _again(turn, message.action_id, "lost", f"the worker was lost: {message.reason}", message.instance)


def _again(turn: Turn, action_id: str, code: str, text: str, instance: str = "") -> None:
    action = turn.state.actions[action_id]
    kept = attempts.fail_attempt(
        turn, action_id, attempt=action.attempt, code=code, message=text, instance=instance, wait=False
    )
    if not kept:
        give_up(turn, action, code, text, instance=instance)


def _tick(turn: Turn, message: Tick) -> None:
    state = turn.state
    for action_id, ready_at in tuple(state.delayed.items()):
        if ready_at <= message.at:
            turn.happen(ev.ActionReadied(at=turn.at, action_id=action_id))
    if not message.clock_runs:
        return
    for action_id, action in tuple(state.actions.items()):
        if action_id in turn.state.actions and attempts.is_overdue(action, message.at):
            if action.status is ActionStatus.DISPATCHED:
                _again(turn, action_id, "not_accepted", "no worker accepted it in time")
            else:
                _again(turn, action_id, "overdue", "its worker did not report in time")
    limits = state.asked.limits
    if message.at - state.accepted_at > limits.wall_time_s * attempts.SECOND_US:
        reason = f"the time limit of {limits.wall_time_s:g} s is over (raise it with --limit wall_time_s=N)"
        end_task(turn, reason, TaskStatus.FAILED)
        return
    _watch_pools(turn, message)


def _watch_pools(turn: Turn, message: Tick) -> None:
    wanted = pools_with_work(turn.state)
    for pool in sorted(wanted - message.live_pools):
        since = turn.state.waiting.get(pool)
        if since is None:
            turn.happen(ev.PoolMissed(at=turn.at, pool=pool))
        elif message.at - since > turn.state.asked.limits.wait_for_role_s * attempts.SECOND_US:
            reason = (
                f"no live process served the pool {pool!r} for {turn.state.asked.limits.wait_for_role_s:g} s"
            )
            end_task(turn, f"{reason}; start one and run the task again", TaskStatus.FAILED)
            return
    for pool in sorted(turn.state.waiting):
        if pool in message.live_pools or pool not in wanted:
            turn.happen(ev.PoolServed(at=turn.at, pool=pool))


def pools_with_work(state: TaskState) -> frozenset[str]:
    """The pools for which something could start now."""
    pools = {
        pool
        for pool, queue in state.ready.items()
        if any(
            (action := state.actions.get(action_id)) is not None and action.status is ActionStatus.READY
            for action_id in queue
        )
    }
    index = state.frontier
    if state.phase is Phase.LANDING and index is not None:
        rule = state.rules[index]
        if rule.status is RuleStatus.RUNNING and rule.cursor < rule.shards:
            pools.add(rule.request.contract.pool)
    return frozenset(pools)


def _compose_done(turn: Turn, message: ComposeDone) -> None:
    rule = turn.state.rules[message.rule]
    if rule.status is not RuleStatus.COMPOSING or rule.generation != message.generation:
        return
    if message.commit is not None:
        composed(turn, message.rule, message.commit, message.base)
        return
    paths = ", ".join(message.conflicts[:3])
    reason = message.reason or f"two of its steps changed the same path: {paths}"
    drop_rule(turn, message.rule, reason)


def _head_done(turn: Turn, message: HeadDone) -> None:
    if turn.state.moving_to != message.commit:
        return
    if message.moved:
        head_moved(turn, message.commit)
    else:
        end_task(turn, "the task's head was moved by somebody else in the hub", TaskStatus.FAILED)

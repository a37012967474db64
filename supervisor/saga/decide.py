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
from supervisor.saga.course import advance, composed, drop_rule, end_task, head_moved, head_stands
from supervisor.saga.messages import (
    Accept,
    Cancel,
    CannotSend,
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
from supervisor.saga.outcomes import give_up, take_handoff
from supervisor.saga.state import StepState, TaskState, needed
from supervisor.saga.steps import open_step
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
    elif state.ending is not None:
        _while_ending(turn, message)
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
            attempts.hold(turn, message)
        case CannotSend():
            _cannot_send(turn, message)
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
            attempts.hold(turn, message)
        case HandOff():
            take_handoff(turn, message)
        case _:
            pass


def _while_ending(turn: Turn, message: Message) -> None:
    """All that is waited for is whether the head has moved: what landed must be told as landed."""
    ending = needed(turn.state.ending)
    if isinstance(message, HeadDone) and message.commit == turn.state.moving_to:
        if message.moved:
            head_moved(turn, message.commit)
        head_stands(turn, ending.reason, ending.status)
    else:
        _after_the_end(turn, message)


def _deliver(turn: Turn, message: Deliver) -> None:
    if turn.state.delivered != message.branch:
        turn.happen(
            ev.BranchDelivered(at=turn.at, branch=message.branch, commit=message.commit, by=message.by)
        )


def _fill_slots(turn: Turn, message: Slots) -> None:
    left = message.count
    while left > 0 and turn.state.is_open:
        action_id = _next_ready(turn.state, message.pool)
        if action_id is None:
            if not _start_next_shard(turn, message.pool):
                return
        elif turn.state.spent_actions > turn.state.asked.limits.actions:
            limit = turn.state.asked.limits.actions
            reason = f"the limit of {limit} actions is used up (raise it with --limit actions=N)"
            end_task(turn, reason, TaskStatus.FAILED)
        else:
            attempts.dispatch(turn, action_id)
            left -= 1


def _next_ready(state: TaskState, pool: str) -> str | None:
    """The action that has waited longest for a slot of this pool."""
    for action_id in state.ready.get(pool, ()):
        action = state.actions.get(action_id)
        if action is not None and action.status is ActionStatus.READY and action_id not in state.delayed:
            return action_id
    return None


def _start_next_shard(turn: Turn, pool: str) -> bool:
    """Open the next step of the running rule, if it is this pool's; False if there is none."""
    state = turn.state
    index = _fanning_out(state)
    if index is None or state.rules[index].request.contract.pool != pool:
        return False
    rule = state.rules[index]
    step = StepState(specs.step_name(rule, rule.cursor, canary=False), index, rule.cursor, rule.base)
    remembered = state.remembered.get(specs.memory_key(state, step)) if state.remembered else None
    if remembered is not None:
        turn.happen(
            ev.StepOpened(
                at=turn.at, step=step.step, rule=index, shard=step.shard, base=step.base, canary=False
            )
        )
        turn.happen(ev.StepEnded(at=turn.at, step=step.step, status=StepStatus.KEPT, from_memory=remembered))
    else:
        open_step(turn, step)
    return True


def _fanning_out(state: TaskState) -> int | None:
    """The rule that has shards to start, if there is one."""
    index = state.frontier
    if state.phase is not Phase.LANDING or index is None:
        return None
    rule = state.rules[index]
    return index if rule.status is RuleStatus.RUNNING and rule.cursor < rule.shards else None


def _cannot_send(turn: Turn, message: CannotSend) -> None:
    action = turn.state.actions.get(message.action_id)
    if action is not None:
        give_up(turn, action, "cannot_be_sent", message.reason)


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
    since = message.steady_since
    if since is None:
        return
    for action_id, action in tuple(state.actions.items()):
        if action_id in turn.state.actions and attempts.is_overdue(action, message.at, since):
            if action.status is ActionStatus.DISPATCHED:
                _again(turn, action_id, "not_accepted", "no worker accepted it in time")
            else:
                _again(turn, action_id, "overdue", "its worker did not report in time")
    limits = state.asked.limits
    if message.at - state.accepted_at > limits.wall_time_s * attempts.SECOND_US:
        reason = f"the time limit of {limits.wall_time_s:g} s is over (raise it with --limit wall_time_s=N)"
        end_task(turn, reason, TaskStatus.FAILED)
        return
    _watch_pools(turn, message, since)


def _watch_pools(turn: Turn, message: Tick, steady_since: int) -> None:
    """Say for which pools the task waits, and end it where nobody came in time; an outage is nobody's absence."""
    state = turn.state
    queued = (one.spec.pool for one in state.actions.values() if one.status is ActionStatus.DISPATCHED)
    wanted = pools_with_work(state).union(queued)
    limit_s = state.asked.limits.wait_for_role_s
    for pool in sorted(wanted - message.live_pools):
        since = state.waiting.get(pool)
        if since is None:
            turn.happen(ev.PoolMissed(at=turn.at, pool=pool))
        elif message.at - max(since, steady_since) > limit_s * attempts.SECOND_US:
            reason = f"no live process served the pool {pool!r} for {limit_s:g} s"
            end_task(turn, f"{reason}; start one and run the task again", TaskStatus.FAILED)
            return
    for pool in sorted(turn.state.waiting):
        if pool in message.live_pools or pool not in wanted:
            turn.happen(ev.PoolServed(at=turn.at, pool=pool))


def pools_with_work(state: TaskState) -> frozenset[str]:
    """The pools for which something could start now."""
    if not state.is_open:
        return frozenset()
    pools = {pool for pool in state.ready if _next_ready(state, pool) is not None}
    index = _fanning_out(state)
    if index is not None:
        pools.add(state.rules[index].request.contract.pool)
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
        reason = message.reason or "the task's head was moved by somebody else in the hub"
        head_stands(turn, reason, TaskStatus.FAILED)

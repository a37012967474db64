"""How events change actions: the ready queues, the attempts, the holders."""

from collections.abc import Callable
from typing import Any

from supervisor.saga import events as ev
from supervisor.saga.fifo import Fifo
from supervisor.saga.moves import ACTION_MOVES, STEP_MOVES, ActionStatus, StepStatus, moved
from supervisor.saga.state import ActionKind, ActionState, TaskState


def _opened(state: TaskState, event: ev.ActionOpened) -> TaskState:
    spec = event.spec
    step = state.steps.get(spec.step)
    if spec.kind is ActionKind.REVIEW and step is not None:
        step = step._replace(status=moved(STEP_MOVES, step.status, StepStatus.REVIEWING))
        state = state._replace(steps=state.steps.set(spec.step, step))
    return _queued(state, spec.pool, spec.action_id)._replace(
        actions=state.actions.set(spec.action_id, ActionState(spec)),
        spent_actions=state.spent_actions + 1,
    )


def _readied(state: TaskState, event: ev.ActionReadied) -> TaskState:
    pool = state.actions[event.action_id].spec.pool
    return _queued(state, pool, event.action_id)._replace(delayed=state.delayed.delete(event.action_id))


def _dispatched(state: TaskState, event: ev.ActionDispatched) -> TaskState:
    action = state.actions[event.action_id]
    pool = action.spec.pool
    queue = state.ready.get(pool, Fifo()).drop_through(event.action_id)
    action = action._replace(
        status=moved(ACTION_MOVES, action.status, ActionStatus.DISPATCHED),
        attempt=event.attempt,
        nonce=event.nonce,
        due=event.due,
    )
    return state._replace(
        inflight=state.inflight.set(pool, state.inflight.get(pool, 0) + 1),
        ready=state.ready.set(pool, queue),
        actions=state.actions.set(event.action_id, action),
    )


def _held(state: TaskState, event: ev.ActionHeld) -> TaskState:
    action = state.actions[event.action_id]
    if action.status is ActionStatus.READY:  # an attempt that was given up turned up after all
        pool = action.spec.pool
        state = state._replace(inflight=state.inflight.set(pool, state.inflight.get(pool, 0) + 1))
    action = action._replace(
        status=moved(ACTION_MOVES, action.status, ActionStatus.RUNNING),
        holders=action.holders | {(event.attempt, event.instance)},
        known_holders=action.known_holders | {(event.attempt, event.instance)},
        due=event.due,
    )
    return state._replace(actions=state.actions.set(event.action_id, action))


def _lease_ended(state: TaskState, event: ev.LeaseEnded) -> TaskState:
    action = state.actions[event.action_id]
    holder = (event.attempt, event.instance)
    action = action._replace(
        holders=action.holders - {holder},
        handed_off=action.handed_off | {holder} if event.handed_off else action.handed_off,
    )
    return state._replace(actions=state.actions.set(event.action_id, action))


def _attempt_failed(state: TaskState, event: ev.AttemptFailed) -> TaskState:
    action = state.actions[event.action_id]
    state = _uncounted(state, action)
    action = action._replace(
        status=moved(ACTION_MOVES, action.status, ActionStatus.READY),
        failures=(*action.failures, (event.code, event.message)),
        ready_at=event.retry_at,
        holders=frozenset(),
    )
    state = state._replace(actions=state.actions.set(event.action_id, action))
    if event.retry_at > event.at:
        return state._replace(delayed=state.delayed.set(event.action_id, event.retry_at))
    return _queued(state, action.spec.pool, event.action_id)


def _ended(state: TaskState, event: ev.ActionEnded) -> TaskState:
    action = state.actions[event.action_id]
    moved(ACTION_MOVES, action.status, ActionStatus.ENDED)
    delayed = state.delayed.delete(event.action_id) if event.action_id in state.delayed else state.delayed
    return _uncounted(state, action)._replace(actions=state.actions.delete(event.action_id), delayed=delayed)


def _unmoved(state: TaskState, event: ev.HandoffSetAside) -> TaskState:
    return state


def _queued(state: TaskState, pool: str, action_id: str) -> TaskState:
    return state._replace(ready=state.ready.set(pool, state.ready.get(pool, Fifo()).push(action_id)))


def _uncounted(state: TaskState, action: ActionState) -> TaskState:
    if action.status is ActionStatus.READY:
        return state
    pool = action.spec.pool
    return state._replace(inflight=state.inflight.set(pool, max(0, state.inflight.get(pool, 0) - 1)))


ACTION_HANDLERS: dict[type[ev.Event], Callable[[TaskState, Any], TaskState]] = {
    ev.ActionOpened: _opened,
    ev.ActionReadied: _readied,
    ev.ActionDispatched: _dispatched,
    ev.ActionHeld: _held,
    ev.LeaseEnded: _lease_ended,
    ev.AttemptFailed: _attempt_failed,
    ev.ActionEnded: _ended,
    ev.HandoffSetAside: _unmoved,
}

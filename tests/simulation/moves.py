"""The moves of a schedule: each does one thing that may happen at any time, and says in a few words what it was.

A move that is not possible now does nothing and says nothing. `number` picks among the possible ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from supervisor.journal.journal import replay
from supervisor.saga.commands import Compose, MoveHead
from supervisor.saga.decide import pools_with_work
from supervisor.saga.events import read_event
from supervisor.saga.messages import Cancel, Deliver, LoseHolder, Slots
from tests.simulation.working import POOLS, evil_answer, honest_answer, name_of
from tests.unit.saga_world import BASE, SECOND, failed

if TYPE_CHECKING:
    from tests.simulation.simulator import Simulator

Move = Callable[["Simulator", int], str]


def deliver(world: Simulator, number: int) -> str:
    """A message arrives, whichever was sent first."""
    if not world.letters:
        return ""
    letter = world.letters.pop(number % len(world.letters))
    if letter.number in world.known:
        return ""
    world.known.add(letter.number)
    world.tell(replace(letter.message, at=world.at))
    return f"arrives: {letter.told}"


def repeat(world: Simulator, number: int) -> str:
    """A message is there twice: as the broker repeats it, or as a sender that heard no confirm."""
    if not world.letters:
        return ""
    letter = world.letters[number % len(world.letters)]
    again = replace(letter, number=letter.number if number % 2 else next(world.numbers))
    world.letters.append(again)
    return f"repeated: {letter.told}"


def offer(world: Simulator, number: int) -> str:
    """Free slots of live workers are offered, as `dispatching` does."""
    wanted = sorted(pools_with_work(world.state))
    for pool in wanted:
        live = sum(worker.slots for worker in world.workers if worker.alive and worker.pool == pool)
        free = live - world.state.inflight.get(pool, 0)
        if free > 0:
            world.tell(Slots(world.at, pool, free))
    return f"slots are offered for {', '.join(wanted)}" if wanted else ""


def send(world: Simulator, number: int) -> str:
    """The supervisor carries out the first thing that it has not yet."""
    sending = next((one for one in world.outbox if not one.is_sent), None)
    if sending is None:
        return ""
    sending.is_sent = True
    return world.carry_out(sending)


def take(world: Simulator, number: int) -> str:
    """A worker takes work from its queue; a slip of the broker leaves it there for another one, too."""
    ready = [worker for worker in world.workers if worker.has_room and world.queues[worker.pool]]
    if not ready:
        return ""
    worker = ready[number % len(ready)]
    queue = world.queues[worker.pool]
    dispatch = queue[0] if number % 3 == 1 else queue.pop(0)
    world.accept(worker, dispatch)
    return f"{worker.instance} takes {name_of(dispatch)}"


def finish(world: Simulator, number: int) -> str:
    """A worker hands in what it was asked for."""
    return world.end(number, lambda one: honest_answer(world.script, world.repository, one), "finishes")


def fail(world: Simulator, number: int) -> str:
    """A worker fails, in one of two ways, or has to leave."""
    code = ("crash", "out_of_memory", "worker_left")[number % 3]
    return world.end(number // 3, lambda one: failed(one, code, f"{code} happened"), f"fails ({code})")


def forge(world: Simulator, number: int) -> str:
    """Somebody hands in what he was never given: with a made-up nonce, or as a stranger."""
    live = [one for one in world.dispatched if one.spec.action_id in world.state.actions]
    if not live:
        return ""
    dispatch = live[number // 2 % len(live)]
    handoff = evil_answer(world.script, world.repository, dispatch)
    if number % 2:
        handoff = handoff.model_copy(update={"nonce": "f" * 32})
        action = world.state.actions.get(dispatch.spec.action_id)
        holders = sorted(action.known_holders) if action else []
        worker = holders[-1][1] if holders else "nobody"
    else:
        worker = "a-stranger"
    world.post(world.handoff(handoff, worker, dispatch), f"a forged handoff of {name_of(dispatch)}")
    return f"{worker} forges a handoff of {name_of(dispatch)}"


def die(world: Simulator, number: int) -> str:
    alive = [worker for worker in world.workers if worker.alive]
    if not alive:
        return ""
    worker = alive[number % len(alive)]
    worker.die()
    return f"{worker.instance} dies"


def bring_worker(world: Simulator, number: int) -> str:
    worker = world.hire(POOLS[number % len(POOLS)])
    return f"{worker.instance} comes"


def roll_call(world: Simulator, number: int) -> str:
    """Who is gone, or does not list what it should run, holds nothing any more."""
    lost = 0
    for action_id, action in tuple(world.state.actions.items()):
        for attempt, instance in sorted(action.holders):
            if not world.still_there(action_id, attempt, instance):
                lost += 1
                world.tell(LoseHolder(world.at, action_id, attempt, instance, "its process was lost"))
    return f"roll call: {lost} lost" if lost else ""


def wrongly_lost(world: Simulator, number: int) -> str:
    """A worker that is well falls silent for too long."""
    held = [(one, *holder) for one in world.state.actions.values() for holder in sorted(one.holders)]
    if not held:
        return ""
    action, attempt, instance = held[number % len(held)]
    world.tell(LoseHolder(world.at, action.spec.action_id, attempt, instance, "its process was lost"))
    return f"{instance} is taken for lost with {action.spec.step}"


def lose_queue(world: Simulator, number: int) -> str:
    """A work queue is deleted, or all in it expires."""
    pool = POOLS[number % len(POOLS)]
    gone, world.queues[pool] = len(world.queues[pool]), []
    return f"the queue of {pool} loses {gone} messages" if gone else ""


def tick(world: Simulator, number: int) -> str:
    """Time passes: a moment, minutes, or back; sometimes nobody could report meanwhile."""
    seconds = (1, 1, 2, 2, 10, 30, 130, 301, -20)[number % 9]
    world.at += seconds * SECOND
    outage = number // 9 % 4 == 0
    if outage:
        world.steady_since = world.at
    world.tell_time(None if outage and number % 2 else world.steady_since)
    return f"{seconds} s pass{' in an outage' if outage else ''}"


def crash(world: Simulator, number: int) -> str:
    """The supervisor dies and starts again from its journal; what was not confirmed is done again."""
    replayed = replay(world.state.task, [read_event(*one) for one in world.recorded])
    assert replayed == world.state, "the recorded events make another state"
    world.state = replayed
    confirmed = number % (len(world.outbox) + 1)
    world.outbox = [
        one
        for at, one in enumerate(world.outbox)
        if not one.is_sent or at >= confirmed or isinstance(one.command, Compose | MoveHead)
    ]
    for sending in world.outbox:
        sending.is_sent = False
    world.effects.clear()
    world.steady_since = world.at
    return f"the supervisor crashes; {len(world.outbox)} things are sent again"


def effect(world: Simulator, number: int) -> str:
    """The outcome of something done in the hub is heard."""
    if not world.effects:
        return ""
    sending, message = world.effects.pop(number % len(world.effects))
    if sending in world.outbox:
        world.outbox.remove(sending)
    world.tell(message)
    return f"the hub answers {type(message).__name__}"


def cancel(world: Simulator, number: int) -> str:
    if number % 8 != 7:  # rare, or most stories would end with it
        return ""
    world.post(Cancel(world.at, "asked"), "cancel")
    return "a cancel is sent"


def say_again(world: Simulator, number: int) -> str:
    """A client that is not sure says it again: submitted, delivered."""
    if number % 2:
        world.post(world.request(), "the submission again")
    else:
        world.post(Deliver(world.at, "branch", BASE), "delivered")
    return "the client repeats itself"


# How often each move is made, of all: work goes on most of the time, or nothing would be worth disturbing.
_WEIGHTS: tuple[tuple[Move, int], ...] = (
    (deliver, 14),
    (send, 14),
    (take, 10),
    (finish, 12),
    (offer, 8),
    (effect, 6),
    (repeat, 3),
    (fail, 3),
    (tick, 4),
    (roll_call, 3),
    (wrongly_lost, 2),
    (crash, 3),
    (die, 2),
    (bring_worker, 2),
    (forge, 4),
    (lose_queue, 1),
    (say_again, 1),
    (cancel, 1),
)
MOVES = tuple(move for move, weight in _WEIGHTS for _ in range(weight))

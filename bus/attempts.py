"""The attempts that this process holds, and the handoffs of those that it lately ended.

One table answers: is this delivery a repeat, what do heartbeats list, whom does an order mean, is there anything left
to finish. An attempt is listed from the moment its acceptance is confirmed until its handoff is, so that the
supervisor never sees it missing in between.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from bus.served import Served
from schemas.action import Action
from schemas.contracts import ContractDocument
from schemas.envelope import Envelope
from schemas.handoff import Failure, Handoff
from schemas.messages import Pulse, Running
from schemas.words import Outcome

# Repeats come within moments or after a broker restart; a pure action that is forgotten simply runs again.
MOST_REMEMBERED = 128
_LONGEST_NOTE = 200

Key = tuple[str, int, str]


class Stage(IntEnum):
    """How far an attempt is, in the only order there is."""

    TAKEN = 0
    """Taken from the queue; the acceptance is not confirmed yet."""
    ACCEPTED = 1
    """The supervisor will know us as its holder; an impure action waits here for its lease."""
    RUNNING = 2
    REPORTING = 3
    """The work is over; the handoff is not confirmed yet."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why an attempt is ended from outside, and how its handoff says so."""

    outcome: Outcome
    failure: Failure


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt on its way through this process. `cause` is the envelope that brought it.

    Events: `decided`, the acceptance is confirmed or given up; `leased`, an impure action may start; `stopping`, it
    shall end for the reason in `stop`.
    """

    action: Action
    served: Served
    cause: Envelope
    received_at: int
    stage: Stage = Stage.TAKEN
    since: int = 0
    note: str = ""
    stop: Stop | None = None
    handoff: Handoff | None = None
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    leased: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def key(self) -> Key:
        """What makes two deliveries the same attempt."""
        return key_of(self.action)

    @property
    def contract(self) -> ContractDocument:
        """The contract that the action is of."""
        return self.served.contract

    def end_with(self, stop: Stop) -> None:
        """Have the work ended; the first reason counts."""
        if self.stop is None:
            self.stop = stop
            self.stopping.set()

    def take_note(self, note: str) -> None:
        """Remember the worker's last words about its progress."""
        self.note = note[:_LONGEST_NOTE]


def key_of(action: Action) -> Key:
    """The identity of an attempt: another nonce is another promise, even under the same numbers."""
    return (action.action_id, action.attempt, action.nonce)


class AttemptTable:
    """The attempts of one role process."""

    def __init__(self) -> None:
        self._open: dict[Key, Attempt] = {}
        self._ended: OrderedDict[Key, Handoff] = OrderedDict()
        self._pulse: dict[str, Pulse] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    def __iter__(self) -> Iterator[Attempt]:
        return iter(tuple(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)

    def add(self, attempt: Attempt) -> None:
        """Hold an attempt from now on."""
        self._open[attempt.key] = attempt
        self._empty.clear()

    def find(self, action: Action) -> Attempt | None:
        """The attempt that is held for this action, if any."""
        return self._open.get(key_of(action))

    def ended(self, action: Action) -> Handoff | None:
        """The handoff of this attempt, if it ended here and is still remembered."""
        return self._ended.get(key_of(action))

    def named(self, action_id: str, attempt: int) -> tuple[Attempt, ...]:
        """The held attempts that an order means, by the words of the order."""
        return tuple(
            one for one in self if (one.action.action_id, one.action.attempt) == (action_id, attempt)
        )

    def accept(self, attempt: Attempt, now_us: int) -> None:
        """The acceptance is confirmed: from now on this process is a holder."""
        attempt.stage, attempt.since = Stage.ACCEPTED, now_us
        attempt.decided.set()

    def forget(self, attempt: Attempt) -> None:
        """Stop holding an attempt that could not be accepted."""
        self._open.pop(attempt.key, None)
        attempt.decided.set()
        self._note_emptiness()

    def report(self, attempt: Attempt, handoff: Handoff) -> None:
        """The work is over with this handoff; it still has to reach the supervisor."""
        attempt.stage, attempt.handoff = Stage.REPORTING, handoff
        self._ended[attempt.key] = handoff
        while len(self._ended) > MOST_REMEMBERED:
            self._ended.popitem(last=False)
        self._beat(attempt, handoff)

    def close(self, attempt: Attempt) -> None:
        """The handoff is confirmed: nothing is held any more."""
        self._open.pop(attempt.key, None)
        self._note_emptiness()

    @property
    def reporting(self) -> int:
        """How many handoffs are not confirmed yet."""
        return sum(one.stage is Stage.REPORTING for one in self._open.values())

    @property
    def pulse(self) -> dict[str, Pulse]:
        """How each contract went here since the start."""
        return dict(self._pulse)

    def running(self) -> tuple[Running, ...]:
        """What heartbeats list."""
        return tuple(_running(one) for one in self if one.stage > Stage.TAKEN)

    async def wait_empty(self) -> None:
        """Returns once nothing is held."""
        await self._empty.wait()

    def _note_emptiness(self) -> None:
        if not self._open:
            self._empty.set()

    def _beat(self, attempt: Attempt, handoff: Handoff) -> None:
        went_well = handoff.outcome in (Outcome.DONE, Outcome.NO_CHANGE)
        went_badly = handoff.outcome in (Outcome.FAILED, Outcome.COULD_NOT_RUN)
        before = self._pulse.get(attempt.contract.ref, Pulse())
        self._pulse[attempt.contract.ref] = Pulse(
            done=before.done + went_well,
            failed=before.failed + went_badly,
            wall_ms=before.wall_ms + handoff.cost.wall_ms,
        )


def _running(attempt: Attempt) -> Running:
    return Running(
        action_id=attempt.action.action_id,
        attempt=attempt.action.attempt,
        task=attempt.action.task,
        contract=attempt.action.contract,
        since=attempt.since,
        note=attempt.note,
    )

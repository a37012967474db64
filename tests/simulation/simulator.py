"""A deterministic simulator of the saga: supervisor, broker, hub and workers as plain data, driven by numbers.

Every number of a schedule picks one move: a message arrives (in any order, perhaps twice), a worker takes, ends, fails,
dies or comes back, time passes or jumps, the supervisor sends one thing, or crashes and is made again from what it
recorded. After the schedule everybody is well again, and the task has to come to rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from schemas.handoff import Handoff
from schemas.plan import Plan
from schemas.words import Outcome
from supervisor.saga.commands import Command, Compose, Dispatch, GrantLease, MoveHead, StopAction
from supervisor.saga.decide import decide
from supervisor.saga.events import Event, write_event
from supervisor.saga.messages import (
    Accept,
    CannotSend,
    ComposeDone,
    HandOff,
    HeadDone,
    Message,
    Submit,
    Tick,
)
from supervisor.saga.state import ActionKind, TaskState
from tests.simulation import invariants, moves
from tests.simulation.script import Repository, Script
from tests.simulation.working import POOLS, Worker, key_of, name_of
from tests.unit.saga_world import PLANNER, REVIEWER, SECOND, TESTER, failed

# A schedule that is not at rest after this many rounds of a healthy fleet never will be.
ROUNDS_AT_MOST = 3_000


@dataclass(eq=False)
class Letter:
    """A message on its way to the supervisor; the same id twice is a repeat that the inbox knows."""

    number: int
    message: Message
    told: str


@dataclass(eq=False)
class Sending:
    """An outbox row: a command, and whether it was carried out since the supervisor last started."""

    command: Command
    is_sent: bool = False


class Simulator:
    """One task, from its submission to its rest."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.repository = Repository()
        self.head: str | None = None
        self.state = TaskState("task-1")
        self.at = 1_000 * SECOND
        self.steady_since = self.at
        self.recorded: list[tuple[str, bytes]] = []
        self.known: set[int] = set()
        self.outbox: list[Sending] = []
        self.effects: list[tuple[Sending, Message]] = []
        self.letters: list[Letter] = []
        self.queues: dict[str, list[Dispatch]] = {pool: [] for pool in POOLS}
        self.dispatched: list[Dispatch] = []
        self.events: list[Event] = []
        self.story: list[str] = []
        self.workers: list[Worker] = []
        self.numbers = count(1)
        for pool in POOLS:
            for _ in range(script.workers):
                self.hire(pool)

    # ---- the run ---------------------------------------------------------------------------------------------

    def run(self, schedule: Sequence[int]) -> None:
        """Submit, disturb, and let everything come to rest; whatever is wrong is told with the story."""
        try:
            self._submit()
            for _ in range(self.script.calm):
                self._one_round()
            for number in schedule:
                self.disturb(number)
            self.story.append("— and from here on all is well —")
            self._settle()
            invariants.at_rest(self)
        except Exception as error:
            lines = "\n".join(self.story[-60:])
            raise AssertionError(
                f"{type(error).__name__}: {error}\n\nscript: {self.script}\n\n{lines}"
            ) from error

    def tell(self, message: Message) -> None:
        """What the supervisor's loop does with one fact: decide, write it all down, and only then act."""
        before = self.state
        decision = decide(before, message)
        self.recorded += [write_event(event) for event in decision.events]
        self.events += decision.events
        self.state = decision.state
        invariants.after(self, before, message, decision)
        for command in decision.commands:
            if isinstance(command, Dispatch) and self._is_oversized(command):
                self.tell(CannotSend(self.at, command.spec.action_id, "it is too large"))
            else:
                self.outbox.append(Sending(command))

    def disturb(self, number: int) -> None:
        move = moves.MOVES[number % len(moves.MOVES)]
        said = move(self, number // len(moves.MOVES))
        if said:
            self.story.append(said)

    # ---- a healthy fleet ----------------------------------------------------------------------------------------

    def _settle(self) -> None:
        for pool in POOLS:
            if not any(worker.alive for worker in self.workers if worker.pool == pool):
                self.hire(pool)
        for _ in range(ROUNDS_AT_MOST):
            if not self._one_round():
                return
        raise AssertionError("the task does not come to rest")

    def _one_round(self) -> bool:
        """Whatever can be done now, else let time pass; False once nothing is left to do."""
        for move in (moves.deliver, moves.send, moves.effect, moves.finish, moves.take):
            if said := move(self, 0):
                self.story.append(said)
                return True
        if moves.roll_call(self, 0) or self.state.status.is_final:
            return not self.state.status.is_final
        before = len(self.outbox)
        moves.offer(self, 0)
        if len(self.outbox) == before:
            self.at += 2 * SECOND
            self.tell_time(self.steady_since)
        return True

    # ---- how things are done -----------------------------------------------------------------------------------

    def _submit(self) -> None:
        self.tell(self.request())

    def request(self) -> Submit:
        rules = tuple(one.as_request() for one in self.script.rules)
        return Submit(self.at, self.script.request(), rules, PLANNER, REVIEWER, TESTER, secret="s3cret")

    def hire(self, pool: str) -> Worker:
        worker = Worker(f"{pool}-{len(self.workers)}", pool, self.script.slots)
        self.workers.append(worker)
        return worker

    def tell_time(self, steady_since: int | None) -> None:
        live = frozenset(worker.pool for worker in self.workers if worker.alive)
        self.tell(Tick(self.at, live, steady_since))

    def carry_out(self, sending: Sending) -> str:
        match sending.command:
            case Dispatch() as dispatch:
                self.queues[dispatch.spec.pool].append(dispatch)
                self.dispatched.append(dispatch)
                self._confirm(sending)
                return f"sent: {name_of(dispatch)}"
            case GrantLease() as grant:
                for worker in self.named(grant.instance):
                    worker.grant(grant.action_id, grant.attempt, grant.nonce)
                self._confirm(sending)
                return f"sent: the lease to {grant.instance}"
            case StopAction() as stop:
                for worker in self.named(stop.instance):
                    worker.stop(stop.action_id, stop.attempt)
                self._confirm(sending)
                return f"sent: stop to {stop.instance}"
            case Compose() as compose:
                commit = self.repository.compose(compose.base, compose.results, compose.message)
                done = ComposeDone(self.at, compose.rule, compose.generation, compose.base, commit)
                self.effects.append((sending, done))
                return f"composed: rule {compose.rule}"
            case MoveHead() as move:
                stands = self.head in (None, move.old) or self.head == move.new
                if stands:
                    self.head = move.new
                self.effects.append((sending, HeadDone(self.at, move.new, moved=stands)))
                return "the head is moved in the hub"

    def _confirm(self, sending: Sending) -> None:
        """The publish was confirmed; that is written with the next transaction, so mostly before a crash."""
        if len(self.dispatched) % 3:
            self.outbox.remove(sending)

    def accept(self, worker: Worker, dispatch: Dispatch) -> None:
        spec, key = dispatch.spec, key_of(dispatch)
        told = f"{worker.instance} accepts {name_of(dispatch)}"
        accept = Accept(self.at, spec.action_id, dispatch.attempt, dispatch.nonce, worker.instance, spec.pool)
        self.post(accept, told)
        if key in worker.ended:  # it came again, and is not run twice
            self.post(self.handoff(worker.ended[key], worker.instance, dispatch), f"{told} again")
        elif self.at > dispatch.start_by:
            late = failed(dispatch, "expired", "its time to start has passed")
            late = late.model_copy(update={"outcome": Outcome.EXPIRED})
            self.post(self.handoff(late, worker.instance, dispatch), f"{told} too late")
        elif not worker.holds(spec.action_id, dispatch.attempt):
            worker.begin(dispatch)

    def end(self, number: int, answer: Callable[[Dispatch], Handoff], told: str) -> str:
        running = [(worker, key) for worker in self.workers for key in worker.running]
        if not running:
            return ""
        worker, key = running[number % len(running)]
        dispatch = worker.running[key]
        handoff = answer(dispatch)
        worker.finish(key, handoff)
        words = f"{worker.instance} {told} {name_of(dispatch)}"
        self.post(self.handoff(handoff, worker.instance, dispatch), words)
        return words

    def handoff(self, handoff: Handoff, instance: str, dispatch: Dispatch) -> HandOff:
        plan = Plan.model_validate(handoff.output["plan"]) if "plan" in handoff.output else None
        base = dispatch.spec.base
        files = len(self.repository.delta(base, handoff.result)) if handoff.result else 0
        return HandOff(
            self.at, handoff, instance, f"m-{len(self.recorded)}", files=files, added=files, plan=plan
        )

    def post(self, message: Message, told: str) -> None:
        self.letters.append(Letter(next(self.numbers), message, told))

    def named(self, instance: str) -> list[Worker]:
        return [worker for worker in self.workers if worker.instance == instance and worker.alive]

    def still_there(self, action_id: str, attempt: int, instance: str) -> bool:
        if any(worker.holds(action_id, attempt) for worker in self.named(instance)):
            return True
        return any(_is_of(letter.message, action_id, attempt, instance) for letter in self.letters)

    def _is_oversized(self, dispatch: Dispatch) -> bool:
        spec = dispatch.spec
        return spec.kind is ActionKind.CHANGE and self.script.rule(spec.rule_id or "").oversized


def _is_of(message: Message, action_id: str, attempt: int, instance: str) -> bool:
    if not isinstance(message, HandOff) or message.instance != instance:
        return False
    return (message.handoff.action_id, message.handoff.attempt) == (action_id, attempt)

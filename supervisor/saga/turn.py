"""One turn of `decide`: the state as it changes under the events decided so far, and what is to be done."""

from supervisor.saga.commands import Command
from supervisor.saga.events import Event
from supervisor.saga.evolve import evolve
from supervisor.saga.state import TaskState


class Turn:
    """Collects events and commands; `state` is always the state after the events so far."""

    def __init__(self, state: TaskState, at: int) -> None:
        self.state = state
        self.at = at
        self.events: list[Event] = []
        self.commands: list[Command] = []

    def happen(self, event: Event) -> None:
        """Record an event and move the state."""
        self.state = evolve(self.state, event)
        self.events.append(event)

    def order(self, command: Command) -> None:
        """Ask for something to be done once the events are recorded."""
        self.commands.append(command)

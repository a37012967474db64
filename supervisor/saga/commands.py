"""What `decide` wants done. Every command is safe to carry out twice: publishing repeats an envelope, composing gives
the same commit, and the head moves by compare-and-swap.
"""

from dataclasses import dataclass

from supervisor.saga.state import ActionSpec


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Put an attempt into its pool; it must start by `start_by` (microseconds UTC)."""

    spec: ActionSpec
    attempt: int
    nonce: str
    start_by: int


@dataclass(frozen=True, slots=True)
class GrantLease:
    """Tell the one holder of an impure attempt to start."""

    pool: str
    instance: str
    action_id: str
    attempt: int
    nonce: str


@dataclass(frozen=True, slots=True)
class StopAction:
    """Tell an instance to stop an attempt."""

    pool: str
    instance: str
    action_id: str
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class Compose:
    """Splice `results` (base, result) onto `base` as one commit with this message."""

    rule: int
    generation: int
    base: str
    results: tuple[tuple[str, str], ...]
    message: str


@dataclass(frozen=True, slots=True)
class MoveHead:
    """Move the task's head from `old` to `new` by compare-and-swap."""

    old: str
    new: str


Command = Dispatch | GrantLease | StopAction | Compose | MoveHead

"""How long an expression may think about one file: some have more ways to fail than there are seconds.

Python's `re` looks for signals while it searches, so a timer of processor time ends it from inside. Only the main
thread gets signals; elsewhere the action's own time limit is all there is.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from schemas.errors import ContractError

# An honest expression takes milliseconds for a large file.
FILE_LIMIT_S = 10.0


class TooSlowError(ContractError):
    """An expression that does not come to an end on a file: another attempt would take as long."""


@contextmanager
def patience(expression: str, path: str) -> Iterator[None]:
    """Raises TooSlowError if what is done in here takes more processor time than a file may."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    limit_s = FILE_LIMIT_S

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlowError(
            f"The expression {_short(expression)!r} took longer than {limit_s:g} s of processor time on {path}.",
            suggestion="Write it so that a text can be matched in one way only: nested repeats like (a+)+ or "
            "(.*)* try all of them. Or narrow the rule's scope.",
            place=("find",),
        )

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."

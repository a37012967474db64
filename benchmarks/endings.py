"""A measurement that is told to stop takes down what it started: SIGTERM unwinds like Ctrl-C."""

import signal
import sys


def unwind_on_sigterm() -> None:
    """From now on SIGTERM raises SystemExit in the main thread."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))

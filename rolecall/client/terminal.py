"""The terminal: one way to make a console, so that colour, width and numbers look the same in every command."""

import sys
from typing import TextIO

from rich.console import Console

# A pipe or a file has no width; long rows are better there than broken ones.
PIPE_WIDTH = 160


def console(file: TextIO | None = None) -> Console:
    """A console for standard output (or another stream); it colours nothing by itself."""
    stream = file or sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=width, soft_wrap=False)


def is_conversation() -> bool:
    """True if a person can be asked: both input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()

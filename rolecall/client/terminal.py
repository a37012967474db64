"""The terminal: one way to make a console, so that colour, width and numbers look the same in every command."""

import shutil
import sys
from pathlib import Path
from typing import TextIO

from rich.console import Console, RenderableType

from bus.settings import Settings, load_settings
from rolecall.client.story import Program

# A pipe or a file has no width; long rows are better there than broken ones.
PIPE_WIDTH = 160


def console(file: TextIO | None = None) -> Console:
    """A console for standard output (or another stream); it colours nothing by itself."""
    stream = file or sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=width, soft_wrap=False)


def show(target: Console, what: RenderableType) -> None:
    """Print a view; what goes into a file or a pipe has no blanks at the ends of its lines."""
    if target.is_terminal:
        target.print(what)
        return
    with target.capture() as captured:
        target.print(what)
    target.file.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())
    target.file.flush()


def is_conversation() -> bool:
    """True if a person can be asked: both input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def program_of(settings: Settings) -> Program:
    """How the user calls us: by a name on the PATH or by where they stand to it, and with an environment if need be."""
    word = "rolecall"
    if shutil.which(word) is None:
        beside = Path(sys.executable).with_name(word)
        here = Path.cwd()
        word = str(beside.relative_to(here)) if beside.is_relative_to(here) else str(beside)
    found_by_default = load_settings().environment
    return Program(word, settings.environment if settings.environment != found_by_default else "")

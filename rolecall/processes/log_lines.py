"""The lines of all children in one stream, one record a line, one colour a role."""

import re

from rich.console import Console
from rich.text import Text

from rolecall.client.phrases import printable

_COLOURS = {
    "supervisor": "magenta",
    "planner": "cyan",
    "executor": "green",
    "reviewer": "yellow",
    "tester": "blue",
    "up": "bold",
}
# What the log of a process of ours writes: time, process, sentence.
_RECORD = re.compile(r"(\d\d:\d\d:\d\d|--:--:--)  (\S+)\s+(.*)")


class LogLines:
    """Prints children's lines; what is no record of ours gets the child's name in front."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, name: str, line: str) -> None:
        """Print one line of the child with this name."""
        self._console.print(tinted(name, line), soft_wrap=True)


def tinted(name: str, line: str) -> Text:
    """The line with its role's colour."""
    colour = _COLOURS.get(re.split(r"[-.]", name)[0], "white")
    record = _RECORD.fullmatch(line)
    if record is None:
        return Text.assemble((f"{name:<20}", colour), "  ", printable(line))
    at, process, text = record.groups()
    style = "red" if text.startswith("!! ") else "yellow" if text.startswith("! ") else ""
    return Text.assemble((at, "dim"), "  ", (f"{process:<20}", colour), "  ", (printable(text), style))

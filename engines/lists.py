"""Lines of a list in a file (imports one a line): put one in, take one out."""

import re
from collections.abc import Sequence

from engines.edits import Edit
from engines.syntax import Span


def line_start(text: str, position: int) -> int:
    """The start of the position's line."""
    return text.rfind("\n", 0, position) + 1


def line_end(text: str, position: int) -> int:
    """Behind the line end of the position's line."""
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def without_lines(text: str, span: Span) -> Edit:
    """The lines of the span out; and blank lines below, where there would be two, or one at the top or a bracket."""
    start, end = line_start(text, span[0]), line_end(text, span[1])
    blank = re.match(r"(?:[ \t]*\r?\n)+", text[end:])
    above = text[:start]
    if blank and (not above.strip() or re.search(r"(\n[ \t]*\r?|[({][ \t]*\r?)\n$", above)):
        end += blank.end()
    elif re.match(r"[ \t]*[)}]", text[end:]):
        gap = re.search(r"\n((?:[ \t]*\r?\n)+)$", above)
        start -= len(gap[1]) if gap else 0
    return Edit(start, end, "")


def groups(text: str, spans: Sequence[Span]) -> list[list[int]]:
    """Indexes of the spans, in groups that blank lines part."""
    found: list[list[int]] = []
    for index, span in enumerate(spans):
        between = text[spans[index - 1][1] : span[0]] if index else "\n\n"
        if re.search(r"\n[ \t\r]*\n", between):
            found.append([])
        found[-1].append(index)
    return found

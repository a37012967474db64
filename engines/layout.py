"""Lines and white space: moving code to another depth, and joining lines that lost their brackets."""

import re
from collections.abc import Iterable

from engines.syntax import Leaf, Span


def deepened(text: str, base: str, newline: str) -> str:
    first, *rest = text.split("\n")
    return newline.join([first, *(base + line if line.strip() or line is rest[-1] else "" for line in rest)])


def template_indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def moved_lines(text: str, span: Span, depth: str, fixed: frozenset[int]) -> str:
    """The captured lines, from the depth of their first line to the new one; strings keep theirs."""
    start, end = span
    old = indent_at(text, start)
    if old == depth or "\n" not in text[start:end]:
        return text[start:end]
    parts: list[str] = []
    position = start
    for line in text[start:end].splitlines(keepends=True):
        movable = position > start and position not in fixed and line.startswith(old) and line.strip()
        parts.append(depth + line[len(old) :] if movable else line)
        position += len(line)
    return "".join(parts)


def fixed_line_starts(tokens: Iterable[Leaf]) -> frozenset[int]:
    """Positions of lines that start inside a token (a string of several lines): moving them changes the string."""
    fixed: set[int] = set()
    for leaf in tokens:
        if "\n" in leaf.text and leaf.text.strip():
            fixed.update(leaf.start + found.end() for found in re.finditer("\n", leaf.text))
    return frozenset(fixed)


def indent_at(text: str, position: int) -> str:
    """The white space at the start of the position's line."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def newline_at(text: str, position: int) -> str:
    """The line end of the position's line, or of the line before where it is the last one."""
    end = text.find("\n", position)
    if end < 0:
        end = text.rfind("\n", 0, position)
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


# What `unbroken` has to tell apart: strings, comments, brackets, a line continued by a backslash, and line ends.
_PYTHON_TOKEN = re.compile(
    r"""(?P<string>(?:\"{3}|'{3}).*?(?:\"{3}|'{3})|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"|(?P<comment>\#[^\n]*)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<joined>\\\r?\n)|(?P<end>[ \t]*\r?\n\s*)|.",
    re.S,
)
_OTHER_TOKEN = re.compile(
    r"""(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)"""
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<joined>\\\r?\n)|(?P<end>[ \t]*\r?\n\s*)|.",
    re.S,
)


_CLOSERS = frozenset(")]},")


class Depth:
    """How deep in brackets a text is that comes in pieces."""

    def __init__(self, *, is_python: bool) -> None:
        self._token = _PYTHON_TOKEN if is_python else _OTHER_TOKEN
        self.depth = 0
        self._before = ""

    def has_open_line_end(self, text: str) -> bool:
        """True if a line ends in the text outside of all brackets, those of earlier pieces included."""
        if self.depth > 0:
            return False
        level = 0
        for found in self._token.finditer(text):
            level += (found["open"] is not None) - (found["close"] is not None)
            if found["end"] is not None and level <= 0:
                return True
        return False

    def pass_over(self, text: str) -> None:
        """Go on behind a text that stays as it is."""
        self._before = text[-1:] or self._before

    def joined(self, text: str) -> tuple[str, bool]:
        """The text with lines that end outside of brackets joined; and whether a comment stands in the way."""
        parts: list[str] = []
        blocked = after_comment = False
        for found in self._token.finditer(text):
            self.depth += (found["open"] is not None) - (found["close"] is not None)
            part = found[0]
            if found["end"] is not None and self.depth <= 0:
                blocked = blocked or after_comment
                needless = (
                    self._before in ("", "(", "[", "{", " ")
                    or text[found.end() : found.end() + 1] in _CLOSERS
                )
                part = "" if needless else " "
            parts.append(part)
            self._before = part[-1:] or self._before
            after_comment = found["comment"] is not None
        return "".join(parts), blocked

"""A name added to an import statement that is there, in the statement's own style."""

import re
from bisect import bisect_right
from collections.abc import Sequence

from engines.edits import Edit
from engines.layout import indent_at, newline_at
from engines.python_imports import Statement, Wanted

# Lines of imports stay within what the file does anyway, and within this.
_SHORT, _LONGEST = 79, 120


def merge(text: str, statement: Statement, wanted: Wanted) -> list[Edit]:
    """The edits that add the name."""
    names = [one.name for one in statement.names]
    index = sorted_place(names, wanted.name)
    start, end = statement.span
    is_one_line = "\n" not in text[start:end]
    if is_one_line:
        edit = _inline(statement, wanted, index)
        longer = _line_length(text, edit.start) + edit.growth
        if longer <= _limit(text) or "#" in text[start:end]:
            return [edit]
        return [_wrapped(text, statement, wanted, index)]
    if statement.is_parenthesized and _is_vertical(text, statement):
        return _on_own_line(text, statement, wanted, index)
    return [_inline(statement, wanted, index)]


def sorted_place(names: Sequence[str], new: str) -> int:
    """Where the new name goes: in order, if the names are in an order that we know, else at the end."""
    for key in (_by_type, _without_case, _as_is):
        keys = [key(name) for name in names]
        if keys == sorted(keys):
            return bisect_right(keys, key(new))
    return len(names)


def _by_type(name: str) -> tuple[int, str]:
    """isort's and ruff's order: CONSTANTS, Classes, the rest."""
    rank = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return rank, name.casefold()


def _without_case(name: str) -> tuple[int, str]:
    return 0, name.casefold()


def _as_is(name: str) -> tuple[int, str]:
    return 0, name


def _inline(statement: Statement, wanted: Wanted, index: int) -> Edit:
    if index < len(statement.names):
        at = statement.names[index].span[0]
        return Edit(at, at, f"{wanted.item}, ")
    at = statement.names[-1].span[1]
    return Edit(at, at, f", {wanted.item}")


def _wrapped(text: str, statement: Statement, wanted: Wanted, index: int) -> Edit:
    """All names in parentheses, one a line: the statement became too long for its line."""
    start, end = statement.span
    newline, indent = newline_at(text, start), indent_at(text, start)
    items = [text[one.span[0] : one.span[1]] for one in statement.names]
    items.insert(index, wanted.item)
    lines = "".join(f"{indent}    {item},{newline}" for item in items)
    head = re.match(r"from\s+\S+\s+import\s*", text[start:end])
    assert head is not None, text[start:end]
    return Edit(start, end, f"{head[0].rstrip()} ({newline}{lines}{indent})")


def _on_own_line(text: str, statement: Statement, wanted: Wanted, index: int) -> list[Edit]:
    spans = [one.span for one in statement.names]
    newline, indent = newline_at(text, spans[0][0]), indent_at(text, spans[0][0])
    if index == 0:
        return [Edit(spans[0][0], spans[0][0], f"{wanted.item},{newline}{indent}")]
    before = spans[index - 1][1]
    line_end = text.find("\n", before)
    line_end -= text[line_end - 1 : line_end] == "\r"
    rest = text[before:line_end]
    if index < len(spans) or rest.lstrip().startswith(","):
        return [Edit(line_end, line_end, f"{newline}{indent}{wanted.item},")]
    if rest.lstrip().startswith(")"):
        return [Edit(before, before, f",{newline}{indent}{wanted.item}")]
    return [Edit(before, before, ","), Edit(line_end, line_end, f"{newline}{indent}{wanted.item}")]


def _is_vertical(text: str, statement: Statement) -> bool:
    """True if every name starts a line."""
    return all(
        not text[text.rfind("\n", 0, one.span[0]) + 1 : one.span[0]].strip() for one in statement.names
    )


def _line_length(text: str, position: int) -> int:
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return (len(text) if end < 0 else end) - start


def _limit(text: str) -> int:
    return max(_SHORT, min(max(map(len, text.splitlines()), default=0), _LONGEST))

"""A new import statement in a Python file: in the right group, in order, and before the first use.

Groups are what blank lines and comments make of the imports at the top: the standard library, other packages, the
project's own relative ones. What is already there decides; where nothing is, the line goes below the docstring and
`from __future__` imports.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ast_grep_py import SgNode

from engines.edits import Edit
from engines.layout import newline_at
from engines.python_imports import Statement, Wanted
from engines.syntax import Span, span_of

_FUTURE, _STDLIB, _PACKAGE, _LOCAL = range(4)
_SHEBANG_OR_CODING = re.compile(r"#!|#.*coding[:=]")


@dataclass(frozen=True, slots=True)
class _Group:
    """Imports that stand together."""

    members: tuple[Statement, ...]

    @property
    def rank(self) -> int:
        return min(rank_of(one.module or one.names[0].name) for one in self.members)


def rank_of(module: str) -> int:
    """Which group a module belongs to."""
    root = module.partition(".")[0]
    if module == "__future__":
        return _FUTURE
    if module.startswith("."):
        return _LOCAL
    return _STDLIB if root in sys.stdlib_module_names else _PACKAGE


def insert(text: str, root: SgNode, statements: Sequence[Statement], wanted: Wanted, first_use: int) -> Edit:
    """The edit that adds a statement for the name at the top of the file, before `first_use`."""
    top = _top_imports(root, statements, first_use)
    newline = newline_at(text, 0)
    rank = rank_of(wanted.module)
    groups = _groups(text, top)
    if rank == _FUTURE or not [one for one in groups if one.rank != _FUTURE]:
        return _first(text, root, [one for one in top if one.module == "__future__"], wanted, newline)
    for group in groups:
        if group.rank == rank:
            return _into(text, group, wanted)
    before = [group for group in groups if group.rank < rank]
    if before:
        at = _line_end(text, before[-1].members[-1].span[1])
        return Edit(at, at, f"{_ended(text, at, newline)}{newline}{wanted.statement}{newline}")
    at = _above_comments(text, groups[0].members[0].span[0])
    return Edit(at, at, f"{wanted.statement}{newline}{newline}")


def beside(text: str, statement: Statement, wanted: Wanted) -> Edit:
    """The edit that adds a statement for the name right below another."""
    at = _line_end(text, statement.span[1])
    newline = newline_at(text, statement.span[0])
    return Edit(at, at, f"{_ended(text, at, newline)}{wanted.statement}{newline}")


def _top_imports(root: SgNode, statements: Sequence[Statement], first_use: int) -> list[Statement]:
    """The plain imports before the first definition and before the first use."""
    stop = first_use
    for child in root.children():
        if child.kind() in ("class_definition", "function_definition", "decorated_definition"):
            stop = min(stop, span_of(child)[0])
            break
    module = span_of(root)
    return [
        one
        for one in statements
        if one.is_plain and one.scope.span == module and one.scope.kind == "module" and one.span[1] <= stop
    ]


def _groups(text: str, top: Sequence[Statement]) -> list[_Group]:
    groups: list[list[Statement]] = []
    for one in top:
        between = text[groups[-1][-1].span[1] : one.span[0]] if groups else "\n\n"
        # A blank line, or anything but a comment at the line's end, starts a group.
        is_apart = re.search(r"\n[ \t\r]*\n", between) or re.search(r"\n[ \t]*\S", between)
        future = groups and (one.module == "__future__") != (groups[-1][-1].module == "__future__")
        if not groups or is_apart or future:
            groups.append([])
        groups[-1].append(one)
    return [_Group(tuple(group)) for group in groups]


def _into(text: str, group: _Group, wanted: Wanted) -> Edit:
    """Into the group, in its order if it has one, else at its end."""
    first = group.members[0].span[0]
    newline = newline_at(text, first)
    keys = [_sort_key(one) for one in group.members]
    new = (bool(wanted.name), wanted.module.casefold())
    if keys == sorted(keys):
        index = sum(key <= new for key in keys)
    elif [key[1] for key in keys] == sorted(key[1] for key in keys):  # `import` and `from` mixed
        index = sum(key[1] <= new[1] for key in keys)
    else:
        index = len(keys)
    if index == 0:
        at = text.rfind("\n", 0, first) + 1
        return Edit(at, at, f"{wanted.statement}{newline}")
    return beside(text, group.members[index - 1], wanted)


def _sort_key(statement: Statement) -> tuple[bool, str]:
    return bool(statement.module), (statement.module or statement.names[0].name).casefold()


def _first(text: str, root: SgNode, future: Sequence[Statement], wanted: Wanted, newline: str) -> Edit:
    """The first import of the file (but for those from `__future__`)."""
    is_future = wanted.module == "__future__"
    if future:
        at = _line_end(text, future[-1].span[1])
        gap = "" if is_future else newline
        return Edit(
            at,
            at,
            f"{_ended(text, at, newline)}{gap}{wanted.statement}{newline}{_room(text, root, at, newline)}",
        )
    head = _head(text, root)
    if head is not None:
        at = _line_end(text, head[1])
        return Edit(
            at,
            at,
            f"{_ended(text, at, newline)}{newline}{wanted.statement}{newline}{_room(text, root, at, newline)}",
        )
    at = _above_comments(text, _first_code(text, root))
    return Edit(at, at, f"{wanted.statement}{newline}{_room(text, root, at, newline)}")


def _room(text: str, root: SgNode, at: int, newline: str) -> str:
    """Blank lines between the new line and what follows, if there are none yet: two before a definition."""
    if not text[at:].strip() or re.match(r"[ \t]*\r?\n", text[at:]):
        return ""
    following = [child for child in root.children() if span_of(child)[0] >= at and child.kind() != "comment"]
    kind = following[0].kind() if following else ""
    if kind in ("import_statement", "import_from_statement"):
        return newline if rank_of(following[0].text().split()[1]) else ""
    return newline * (2 if kind.endswith("definition") else 1)


def _head(text: str, root: SgNode) -> Span | None:
    """The docstring, or the comments at the very top that do not belong to the code below them."""
    for child in root.children():
        if child.kind() == "comment":
            continue
        only = child.children()
        if (
            child.kind() == "expression_statement"
            and len(only) == 1
            and only[0].kind() in ("string", "concatenated_string")
        ):
            return span_of(child)
        break
    return _top_comments(text, root)


def _top_comments(text: str, root: SgNode) -> Span | None:
    """The block of comments at the very top, unless it says something about the code right below it."""
    block: Span | None = None
    for child in root.children():
        start, end = span_of(child)
        if child.kind() != "comment" or text.count("\n", block[1] if block else 0, start) > 1:
            break
        block = (block[0] if block else start, end)
    if block is None:
        return None
    touches_code = re.match(r"[ \t]*\r?\n[ \t]*\S", text[block[1] :]) is not None
    lines = text[: block[1]].splitlines()
    return None if touches_code and not any(map(_SHEBANG_OR_CODING.match, lines)) else block


def _first_code(text: str, root: SgNode) -> int:
    for child in root.children():
        if child.kind() != "comment":
            return span_of(child)[0]
    return len(text)


def _above_comments(text: str, position: int) -> int:
    """The start of the line, or of the block of comment lines right above it."""
    at = text.rfind("\n", 0, position) + 1
    while at > 0:
        start = text.rfind("\n", 0, at - 1) + 1
        line = text[start:at].strip()
        if not line.startswith("#") or _SHEBANG_OR_CODING.match(line):
            break
        at = start
    return at


def _line_end(text: str, position: int) -> int:
    """Behind the line end of the position's line."""
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def _ended(text: str, at: int, newline: str) -> str:
    """A line end, if what is above the position lacks one."""
    return newline if at and not text[:at].endswith("\n") else ""

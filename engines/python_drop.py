"""Takes a name that is not used any more out of its import statement, and the statement when it was the last one.

Comments on lines of their own survive; a comment at the end of a line goes with the line that it is about.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ast_grep_py import SgNode

from engines.edits import Edit
from engines.python_imports import Imported, Statement
from engines.syntax import Span, is_comment_kind, span_of

_NOQA = re.compile(r"#\s*noqa\b(?!\s*:(?![^#]*\bF401\b))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Dropped:
    """The edits that take the name out, or the reason why it stays; `comment` is what went with its line.

    `is_wanted` if the file itself says that it shall stay.
    """

    edits: tuple[Edit, ...] = ()
    reason: str = ""
    comment: str = ""
    is_wanted: bool = False


def drop(text: str, statement: Statement, one: Imported) -> Dropped:
    """Take one name of a statement out."""
    start, end = _whole_lines(text, statement.span)
    comments = _comments_within(text, (start, end))
    if any(_NOQA.search(comment) for comment in comments):
        return Dropped(reason="its line has a `noqa`", is_wanted=True)
    if one.alias and one.alias == one.name:
        return Dropped(reason="`X as X` exports it", is_wanted=True)
    if len(statement.names) > 1:
        return _name_out(text, statement, one)
    if statement.is_for_types and len(statement.guards) == 1:
        return _from_block(text, statement)
    if not statement.is_plain:
        return Dropped(reason=f"it stands inside `{statement.guards[0]}`")
    return _from_block(text, statement)


def _name_out(text: str, statement: Statement, one: Imported) -> Dropped:
    index = statement.names.index(one)
    start, end = one.span
    line_start, line_end = text.rfind("\n", 0, start) + 1, _line_end(text, end)
    after = text[end:line_end]
    is_alone = not text[line_start:start].strip() and re.fullmatch(r"\s*,?\s*(#.*)?\s*", after) is not None
    if is_alone and statement.is_parenthesized:
        return Dropped((Edit(line_start, line_end, ""),), comment=_comment_of(after))
    if index + 1 < len(statement.names):
        following = statement.names[index + 1].span[0]
        if text.count("\n", end, following) and index > 0:
            return Dropped((Edit(statement.names[index - 1].span[1], end, ""),))
        return Dropped((Edit(start, following, ""),))
    return Dropped((Edit(statement.names[index - 1].span[1], end, ""),))


def _from_block(text: str, statement: Statement) -> Dropped:
    """The whole statement; a block that would be empty gets `pass`, or goes if it was there for types only."""
    block = statement.node.parent()
    stay = [
        child
        for child in (block.children() if block is not None else [])
        if not is_comment_kind(child.kind()) and child.kind() != ";" and span_of(child) != statement.span
    ]
    if stay or block is None or block.kind() == "module":
        return _statement_out(text, statement.span)
    condition = block.parent()
    if statement.is_for_types and condition is not None and _is_only_branch(condition):
        if any(is_comment_kind(child.kind()) for child in block.children()):
            return Dropped(reason="a comment stands with it")
        return _statement_out(text, span_of(condition))
    return Dropped((Edit(*statement.span, "pass"),))


def _is_only_branch(condition: SgNode) -> bool:
    return condition.kind() == "if_statement" and condition.field("alternative") is None


def _statement_out(text: str, span: Span) -> Dropped:
    start, end = span
    line_start, line_end = text.rfind("\n", 0, start) + 1, _line_end(text, end)
    before, after = text[line_start:start], text[end:line_end]
    comment = _comment_of(after)
    if not before.strip() and (not after.strip(" \t\r\n;") or after.lstrip(" \t").startswith("#")):
        return Dropped((_lines_out(text, line_start, line_end),), comment=comment)
    semicolon = re.match(r"[ \t]*;[ \t]*", after)
    if semicolon:
        return Dropped((Edit(start, end + semicolon.end(), ""),))
    left = re.search(r"[ \t]*;[ \t]*$", before)
    if left:
        return Dropped((Edit(start - len(left[0]), end, ""),))
    return Dropped(reason="it shares its line with other code")


def _lines_out(text: str, start: int, end: int) -> Edit:
    """Whole lines out, and the blank lines below where there would be too many then."""
    blank = re.match(r"(?:[ \t]*\r?\n)+", text[end:])
    is_first = not text[:start].strip()
    between_blanks = bool(re.search(r"\n[ \t]*\r?\n$", text[:start]))
    if blank and (is_first or (between_blanks and re.match(r"(from|import)\b", text[end + blank.end() :]))):
        end += blank.end()
    return Edit(start, end, "")


def _whole_lines(text: str, span: Span) -> Span:
    return text.rfind("\n", 0, span[0]) + 1, _line_end(text, span[1])


def _comments_within(text: str, span: Span) -> Sequence[str]:
    return re.findall(r"#[^\r\n]*", text[span[0] : span[1]])


def _comment_of(after: str) -> str:
    found = re.search(r"#[^\r\n]*", after)
    return found[0].strip() if found else ""


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1

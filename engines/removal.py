"""Taking a statement out: with its line where it has one for itself, and never so that its neighbour takes its place.

`if (x) log(y);` without its second half would make the next statement conditional: only a statement in a block goes.
"""

import re
from collections.abc import Sequence

from ast_grep_py import SgNode

from engines.languages import Language
from engines.pieces import Piece, Rewrite
from engines.syntax import Span, is_comment_kind, is_import_kind, span_of

_BLOCK = re.compile(
    r"^(program|module|source_file|translation_unit|compilation_unit|chunk|source|statement_block|block"
    r"|compound_statement|statement_list|body_statement|class_body|declaration_list|field_declaration_list)$"
)
_STATEMENT = re.compile(r"(statement|definition|declaration|decorator)$")


def removals(
    nodes: Sequence[SgNode], text: str, spoken: Language
) -> tuple[list[Rewrite], list[tuple[SgNode, str]]]:
    """What taking out each node means for the text; and (node, reason) for those that must stay."""
    found = [(node, _statement_of(node)) for node in nodes]
    refused = [(node, "only a statement in a block can be removed") for node, one in found if one is None]
    statements = [(node, one) for node, one in found if one is not None]
    going = {span_of(statement) for _, statement in statements}
    filled: set[Span] = set()
    return [_removal(node, one, text, spoken, going, filled) for node, one in statements], refused


def _statement_of(node: SgNode) -> SgNode | None:
    """The statement that is nothing but this node (and perhaps a semicolon), if it stands in a block."""
    statement = node
    parent = statement.parent()
    while parent is not None and not _BLOCK.match(parent.kind()) and _is_only(statement, parent):
        statement = parent
        parent = statement.parent()
    kind = statement.kind()
    if kind == "decorator":
        return statement
    if parent is None or not _BLOCK.match(parent.kind()):
        return None
    is_statement = _STATEMENT.search(kind) or is_import_kind(kind) or statement.is_named()
    return statement if is_statement else None


def _is_only(node: SgNode, parent: SgNode) -> bool:
    return parent.text().rstrip("; \t") == node.text().rstrip("; \t")


def _removal(
    node: SgNode, statement: SgNode, text: str, spoken: Language, going: set[Span], filled: set[Span]
) -> Rewrite:
    start, end = span_of(statement)
    filler = ""
    block = statement.parent()
    if spoken.name == "python" and block is not None and block.kind() == "block":
        stay = [one for one in block.children() if not is_comment_kind(one.kind()) and one.text() != ";"]
        if all(span_of(one) in going for one in stay) and span_of(block) not in filled:
            filled.add(span_of(block))
            filler = "pass"
    if not filler:
        start, end = _with_layout(text, start, end)
    return Rewrite((start, end), (Piece(filler),), is_expression=False, old=node.text())


def _with_layout(text: str, start: int, end: int) -> Span:
    """The span with what would be left behind: its line, or the semicolon between it and a neighbour."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    before, after = text[line_start:start], text[end:line_end]
    if not before.strip() and not after.strip(" \t\r;"):
        return line_start, min(line_end + 1, len(text))
    semicolon = re.match(r"[ \t]*;[ \t]*", after)
    if semicolon and after[semicolon.end() :].strip():
        return start, end + semicolon.end()
    left = re.search(r"[ \t]*;[ \t]*$", before)
    if left:
        return start - len(left[0]), end
    if not before.strip():  # a comment follows: it keeps the line
        return start, end + len(after) - len(after.lstrip(" \t"))
    if before.endswith(" ") and after.startswith(" "):
        return start - 1, end
    return start, end

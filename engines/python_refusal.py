"""What Python itself says against a text that the grammar takes: a star where none may stand, an argument out of order.

Asking about a whole file takes longer than parsing it, so only the statements that are not in the old text are asked
about; what seems wrong then is asked again as a whole, before anything is said.
"""

import ast
import warnings
from collections.abc import Iterator

from ast_grep_py import SgNode

from engines.syntax import Span, span_of

_BLOCKS = frozenset({"block", "module"})


def python_refusal(root: SgNode, text: str, before: str) -> str | None:
    """Why Python would refuse the text and did not refuse the one before, or None; `root` is the text's tree."""
    if all(_is_taken(text, span) for span in _changed(root, before)):
        return None
    refusal = _refusal(text)
    return None if refusal is None or _refusal(before) is not None else refusal


def _changed(node: SgNode, before: str) -> Iterator[Span]:
    """The innermost statements whose text does not stand in the text before."""
    for child in node.children():
        if child.text() in before:
            continue
        if child.kind() in _BLOCKS or _is_only_inside(child, before):
            yield from _changed(child, before)
        else:
            yield span_of(child)


def _is_only_inside(node: SgNode, before: str) -> bool:
    """True for a compound statement (or a clause of one) of which only statements in its blocks are new."""
    parts = node.children()
    if not any(part.kind() in _BLOCKS or _has_block(part) for part in parts):
        return False
    return all(
        part.kind() in _BLOCKS
        or part.text() in before
        or (_has_block(part) and _is_only_inside(part, before))
        for part in parts
    )


def _has_block(node: SgNode) -> bool:
    return any(child.kind() in _BLOCKS for child in node.children())


def _is_taken(text: str, span: Span) -> bool:
    """True if Python takes the statement at the span, on its own lines; False where that cannot be said."""
    start = text.rfind("\n", 0, span[0]) + 1
    indent = text[start : span[0]]
    if indent.strip(" \t"):
        return False
    frame = "if 1:\n" if indent else ""
    return _refusal(f"{frame}{text[start : span[1]]}\n") is None


def _refusal(text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return f"{error.msg} (line {error.lineno})"
    except (ValueError, RecursionError, MemoryError):
        return None
    return None

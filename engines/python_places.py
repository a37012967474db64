"""Words of Python that stand only in some functions: `await` in an async one, `yield from` in any other one.

Only what the replacement brings along is looked at, match by match: one place that cannot have it keeps no other back.
"""

from collections.abc import Sequence
from itertools import pairwise

from ast_grep_py import SgNode

from engines.syntax import span_of
from engines.template import Item

_SCOPES = ("function_definition", "class_definition", "lambda")


def function_refusal(match: SgNode, old: Sequence[Item], new: Sequence[Item]) -> str | None:
    """Why the replacement's words cannot stand in the function around the match, or None."""
    before, after = _words(old), _words(new)
    if {"def", "lambda", "class"} & set(after):
        return None  # it brings the function along
    brought = set(after) - set(before)
    function = _function_around(match)
    is_async = function is not None and any(child.kind() == "async" for child in function.children())
    if {"await", "async"} & brought and not is_async:
        return f"`{min({'await', 'async'} & brought)}` can stand in an async function only"
    if _has_yield_from(after) and not _has_yield_from(before) and is_async:
        return "`yield from` cannot stand in an async function"
    if function is None and {"yield", "return"} & brought:
        return f"`{min({'yield', 'return'} & brought)}` can stand in a function only"
    return None


def _words(items: Sequence[Item]) -> list[str]:
    return [item.text for item in items if item.hole is None]


def _has_yield_from(words: Sequence[str]) -> bool:
    return ("yield", "from") in pairwise(words)


def _function_around(match: SgNode) -> SgNode | None:
    """The function in whose body the match runs; None at the top of a module or class."""
    inner = match
    for scope in match.ancestors():
        body = scope.field("body") if scope.kind() in _SCOPES else None
        if body is not None and span_of(body)[0] <= span_of(inner)[0] < span_of(body)[1]:
            return None if scope.kind() == "class_definition" else scope
        inner = scope
    return None

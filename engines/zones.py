"""Where in a file code, comments, strings and documentation are.

Documentation is a documentation file as a whole, and a docstring. A string is the literal with its quotes; what
stands in its holes (`{x}` in an f-string) is code.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from ast_grep_py import SgNode

from engines.languages import Language, ending_of
from engines.syntax import Span, is_comment_kind, span_of

CODE, DOCS, STRINGS, COMMENTS = "code", "docs", "strings", "comments"

_DOC_ENDINGS = frozenset(
    {"md", "markdown", "rst", "txt", "adoc", "asciidoc", "org", "tex", "texi", "pod", "man"}
)
_DOC_NAMES = re.compile(
    r"(readme|changes|changelog|history|news|authors|contributing|license|copying|todo|notice)\b", re.I
)
_STRING = re.compile(
    r"^(string|.*_string|.*string_literal|template_string|encapsed_string|heredoc_body|char_literal|rune_literal"
    r"|character_literal|.*_string_scalar|string_scalar|attribute_value|quoted_attribute_value|binary_string)$"
)
_HOLE = re.compile(
    r"^(interpolation|template_substitution|string_interpolation|interpolated_expression|expansion|simple_expansion"
    r"|command_substitution|template_interpolation|format_expression)$"
)


def is_documentation(path: str) -> bool:
    """True for files that people read as text."""
    name = PurePosixPath(path).name
    ending = ending_of(path)
    return ending in _DOC_ENDINGS or (not ending and _DOC_NAMES.match(name) is not None)


def zones(root: SgNode, spoken: Language) -> list[tuple[Span, str]]:
    """Comments, strings and docstrings of a parsed file, in order; the rest is code."""
    return sorted(_walk(root, spoken))


def admitted(length: int, marked: Iterable[tuple[Span, str]], wanted: frozenset[str]) -> list[Span]:
    """The spans in which the wanted kinds stand; neighbours are joined."""
    spans: list[Span] = []
    at = 0
    for (start, end), kind in marked:
        if CODE in wanted:
            spans.append((at, start))
        if kind in wanted:
            spans.append((start, end))
        at = max(at, end)
    if CODE in wanted:
        spans.append((at, length))
    joined: list[Span] = []
    for start, end in spans:
        if start >= end:
            continue
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _walk(root: SgNode, spoken: Language) -> Iterator[tuple[Span, str]]:
    stack = [root]
    while stack:
        node = stack.pop()
        kind = node.kind()
        if is_comment_kind(kind):
            yield span_of(node), COMMENTS
        elif _STRING.match(kind) and node.is_named():
            is_doc = spoken.name == "python" and is_docstring(node)
            holes = list(_holes(node))
            yield from ((span, DOCS if is_doc else STRINGS) for span in _between(span_of(node), holes))
            stack.extend(holes)
        else:
            stack.extend(node.children())


def _holes(string: SgNode) -> Iterator[SgNode]:
    stack = string.children()
    while stack:
        node = stack.pop()
        if _HOLE.match(node.kind()):
            yield node
        else:
            stack.extend(node.children())


def _between(whole: Span, holes: Iterable[SgNode]) -> Iterator[Span]:
    at = whole[0]
    for start, end in sorted(span_of(hole) for hole in holes):
        if at < start:
            yield at, start
        at = end
    if at < whole[1]:
        yield at, whole[1]


def is_docstring(string: SgNode) -> bool:
    """True for a string that is a statement of its own: what documents a module, class, function or attribute."""
    parent = string.parent()
    if parent is not None and parent.kind() == "concatenated_string":
        parent = parent.parent()
    return parent is not None and parent.kind() == "expression_statement" and not list(_holes(string))

"""Parsed text: the few questions that the engines put to ast-grep's trees.

Positions are indexes into the text (code points), spans are half-open.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ast_grep_py import SgNode, SgRoot

from engines.languages import Language

Span = tuple[int, int]

_IMPORTS = re.compile(
    r"^(import_statement|import_from_statement|future_import_statement|import_declaration|import_spec|use_declaration"
    r"|extern_crate_declaration|using_directive|import_header|import_list|import_or_export|preproc_include"
    r"|namespace_use_declaration|import_directive)$"
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A token: its span, text and kind; a comment is a leaf too."""

    start: int
    end: int
    text: str
    kind: str
    is_named: bool

    @property
    def is_comment(self) -> bool:
        """True for a comment of any kind."""
        return is_comment_kind(self.kind)


# One file is looked at from several sides, one after the other; parsing is most of the work.
@lru_cache(maxsize=6)
def parse(text: str, language: Language) -> SgNode:
    """The root of the text's tree."""
    return SgRoot(text, language.name).root()


def span_of(node: SgNode) -> Span:
    """Where a node stands."""
    where = node.range()
    return where.start.index, where.end.index


def line_of(text: str, position: int) -> int:
    """The line of a position, counted from 1."""
    return text.count("\n", 0, position) + 1


def first_fault(root: SgNode, language: Language) -> int | None:
    """The first position that the parser could not make sense of, or None if the text parses."""
    return min((start for start, _ in fault_spans(root, language)), default=None)


# Asked about the same tree before and after what is done to it; looking at every node's text takes half as long as parsing.
@lru_cache(maxsize=6)
def fault_spans(root: SgNode, language: Language) -> tuple[Span, ...]:
    """Where the parser could not make sense of the text.

    A missing token is a leaf without text. Some grammars have such leaves in sound code (Go's last line end, an
    empty heredoc); only Python's empty block is a fault although it has a name.
    """
    if root.kind() == "ERROR":
        return (span_of(root),)
    faults: list[Span] = []
    for node in root.find_all(any=[{"kind": "ERROR"}, {"regex": "^$"}]):
        missing = node.is_leaf() and not node.is_named() and node.kind() not in ("", "\0")
        is_empty_block = language.name == "python" and node.kind() == "block"
        if missing or is_empty_block or node.kind() == "ERROR":
            faults.append(span_of(node))
    return tuple(faults)


def leaves(node: SgNode, whole: frozenset[Span] = frozenset()) -> Iterator[Leaf]:
    """The tokens of a node, in order; those without text, and a backslash at a line's end, are left out.

    What stands at a span of `whole` comes as one token.
    """
    stack = [node]
    while stack:
        one = stack.pop()
        span, kind = span_of(one), one.kind()
        children = () if span in whole or is_comment_kind(kind) else one.children()
        if children:
            stack.extend(reversed(children))
        elif span[0] < span[1] and kind != "line_continuation":
            yield Leaf(*span, one.text(), kind, one.is_named())


def nodes_at(root: SgNode, spans: Iterable[Span]) -> dict[Span, SgNode]:
    """The deepest named node that stands exactly at each span; spans without one are left out."""
    wanted = set(spans)
    found: dict[Span, SgNode] = {}
    stack: list[tuple[SgNode, list[Span]]] = [(root, sorted(wanted))]
    while stack:
        node, inside = stack.pop()
        here = span_of(node)
        if here in wanted and node.is_named():
            found[here] = node
        for child in node.children():
            start, end = span_of(child)
            within = [one for one in inside if start <= one[0] and one[1] <= end]
            if within:
                stack.append((child, within))
    return found


def inside_import(node: SgNode) -> bool:
    """True if the node is an import or a part of one."""
    return any(is_import_kind(one.kind()) for one in (node, *node.ancestors()))


def is_import_kind(kind: str) -> bool:
    """True for the kinds of nodes that bring names in."""
    return _IMPORTS.match(kind) is not None


def is_comment_kind(kind: str) -> bool:
    """True for comments, in every grammar."""
    return "comment" in kind


def innermost(spans: Sequence[Span]) -> list[int]:
    """Indexes of the spans that hold no other one of them."""
    order = sorted(range(len(spans)), key=lambda index: (spans[index][0], -spans[index][1]))
    holders: set[int] = set()
    open_ones: list[int] = []
    for index in order:
        while open_ones and spans[open_ones[-1]][1] <= spans[index][0]:
            open_ones.pop()
        holders.update(open_ones)
        open_ones.append(index)
    return [index for index in order if index not in holders]

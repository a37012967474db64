"""Which tokens of a match are which tokens of the pattern: the ground on which small edits stand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ast_grep_py import SgNode

from engines.syntax import Leaf, Span, is_comment_kind, leaves, span_of
from engines.template import Hole, Item, Template


@dataclass(frozen=True, slots=True)
class Capture:
    """What a hole matched: its span (None if it is empty), the kinds of its nodes, and of what they are a part.

    `parts` are the spans of its nodes.
    """

    span: Span | None
    kinds: tuple[str, ...]
    parent: str = ""
    parts: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Alignment:
    """`spans` of the pattern's tokens in the file; an empty hole has the empty span where it would stand.

    `extras` are tokens of the match that the pattern does not have: comments, a trailing comma, `async`.
    """

    spans: tuple[Span, ...]
    extras: tuple[Leaf, ...]


def captures(node: SgNode, one: Template) -> dict[str, Capture]:
    """What each hole of the template matched."""
    found: dict[str, Capture] = {}
    for name, is_many in one.names().items():
        if is_many:
            nodes = _without_last_comments(node.get_multiple_matches(name))
        else:
            single = node.get_match(name)
            nodes = [] if single is None else [single]
        parts = tuple(span_of(each) for each in nodes)
        span = (parts[0][0], parts[-1][1]) if parts else None
        parent = nodes[0].parent() if nodes else None
        kinds = tuple(each.kind() for each in nodes if each.is_named())
        found[name] = Capture(span, kinds, parent.kind() if parent else "", parts)
    return found


def tokens_of(node: SgNode, caught: Mapping[str, Capture]) -> list[Leaf]:
    """The tokens of a match; what holes caught comes in one piece."""
    whole = frozenset(part for capture in caught.values() for part in capture.parts)
    return list(leaves(node, whole))


def _without_last_comments(nodes: list[SgNode]) -> list[SgNode]:
    """A comment at the end belongs to the layout: what is put behind it would become a part of the comment."""
    while nodes and is_comment_kind(nodes[-1].kind()):
        nodes = nodes[:-1]
    return nodes


def align(
    items: Sequence[Item], tokens: Sequence[Leaf], caught: Mapping[str, Capture], text: str
) -> Alignment | None:
    """Walk pattern and match (its tokens) side by side; None if they do not run in step."""
    return _Walk(tokens, caught, text).run(items, tokens[0].start) if tokens else None


class _Walk:
    def __init__(self, tokens: Sequence[Leaf], caught: Mapping[str, Capture], text: str) -> None:
        self._tokens = tokens
        self._caught = caught
        self._text = text
        self._next = 0
        self._extras: list[Leaf] = []

    def run(self, items: Sequence[Item], start: int) -> Alignment | None:
        spans: list[Span] = []
        at = start
        for index, item in enumerate(items):
            if item.hole is not None:
                span = self._hole(item.hole, at)
            elif item.text == "," and self._is_spared(items, index):
                span = (at, at)
            else:
                span = self._literal(item)
            if span is None:
                return None
            spans.append(span)
            at = span[1]
        rest = self._tokens[self._next :]
        if any(leaf.is_named and not leaf.is_comment for leaf in rest):
            return None
        return Alignment(tuple(spans), (*self._extras, *rest))

    def _is_spared(self, items: Sequence[Item], index: int) -> bool:
        """True for the comma of the pattern that a match does not have, next to a `$$$A` that caught nothing."""
        near = [items[at].hole for at in (index - 1, index + 1) if 0 <= at < len(items)]
        is_empty = any(hole and hole.is_many and self._caught[hole.name].span is None for hole in near)
        has_comma = self._next < len(self._tokens) and self._tokens[self._next].text == ","
        return is_empty and not has_comma

    def _literal(self, item: Item) -> Span | None:
        while self._next < len(self._tokens):
            leaf = self._tokens[self._next]
            self._next += 1
            if leaf.text == item.text:
                return leaf.start, leaf.end
            if leaf.is_named and not leaf.is_comment:
                return None
            self._extras.append(leaf)
        return None

    def _hole(self, hole: Hole, at: int) -> Span | None:
        caught = self._caught[hole.name]
        if caught.span is None:
            return (at, at) if hole.is_many else None
        start, end = caught.span
        if hole.is_many:
            return self._run_to(start, end)
        # A name that stands twice was caught only once: the other one is known by having the same text.
        return self._same_text("".join(self._text[start:end].split()))

    def _run_to(self, start: int, end: int) -> Span | None:
        self._skip_comments(start)
        if self._next >= len(self._tokens) or self._tokens[self._next].start != start:
            return None
        while self._next < len(self._tokens) and self._tokens[self._next].end <= end:
            self._next += 1
        return start, end

    def _same_text(self, wanted: str) -> Span | None:
        self._skip_extras(wanted)
        if self._next >= len(self._tokens):
            return None
        start = end = self._tokens[self._next].start
        seen = ""
        while self._next < len(self._tokens) and len(seen) < len(wanted):
            leaf = self._tokens[self._next]
            seen += "".join(self._text[max(leaf.start, end) : leaf.end].split())
            end = leaf.end
            self._next += 1
        return (start, end) if seen == wanted else None

    def _skip_comments(self, until: int) -> None:
        while self._next < len(self._tokens) and self._tokens[self._next].start < until:
            leaf = self._tokens[self._next]
            if not leaf.is_comment:
                return
            self._extras.append(leaf)
            self._next += 1

    def _skip_extras(self, wanted: str) -> None:
        while self._next < len(self._tokens):
            leaf = self._tokens[self._next]
            if not leaf.is_comment and (leaf.is_named or wanted.startswith("".join(leaf.text.split()))):
                return
            self._extras.append(leaf)
            self._next += 1

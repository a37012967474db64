"""What one match becomes: the new text, piece by piece, or the reason why it has to stay.

Where match and replacement run in step, everything that both have stays as it stands in the file. Else the match is
written anew from the template, with captured lines moved to their new depth.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from ast_grep_py import SgNode

from engines.in_step import InStep, is_wordy, kept_piece
from engines.layout import deepened, fixed_line_starts, indent_at, moved_lines, newline_at, template_indent
from engines.matching import Alignment, Capture, align, captures, tokens_of
from engines.pattern import Pattern, Variant
from engines.pieces import Piece, Rewrite, commas_mended, joined_literals, on_one_line, refuse_extra
from engines.syntax import Leaf, Span, leaves, span_of
from engines.template import Item

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


def rewrite_of(node: SgNode, variant: Variant, pattern: Pattern, text: str) -> Rewrite:
    """What the match becomes. Raises RefusedError if that would lose something."""
    start, end = span_of(node)
    caught = captures(node, pattern.match)
    tokens = tokens_of(node, caught)
    alignment = align(variant.reading.items, tokens, caught, text)
    if alignment is not None and variant.steps is not None:
        pieces = list(InStep(pattern, variant, alignment, caught, text, (start, end)).pieces(variant.steps))
    else:
        _check_nothing_lost(tokens, variant, alignment, caught)
        pieces = list(_anew(pattern, caught, text, node))
    new = commas_mended(joined_literals(pieces))
    if _loses_brackets(node, variant, pattern):
        new = on_one_line(new, is_python=pattern.language.name == "python")
    return Rewrite((start, end), new, variant.is_expression, text[start:end], pattern.replace.text)


def _check_nothing_lost(
    tokens: Sequence[Leaf], variant: Variant, alignment: Alignment | None, caught: dict[str, Capture]
) -> None:
    if alignment is not None:
        for extra in alignment.extras:
            refuse_extra(extra)
        return
    spans = [capture.span for capture in caught.values() if capture.span]
    said = Counter(item.text for item in variant.reading.items)
    for leaf in tokens:
        if any(start <= leaf.start and leaf.end <= end for start, end in spans):
            continue
        if said[leaf.text] > 0:
            said[leaf.text] -= 1
        elif leaf.is_comment or not leaf.is_named:
            refuse_extra(leaf)


def _anew(pattern: Pattern, caught: dict[str, Capture], text: str, node: SgNode) -> Iterator[Piece]:
    """The template from start to end, its lines at the depth of the match, in the file's line ends."""
    start = span_of(node)[0]
    base, newline = indent_at(text, start), newline_at(text, start)
    replace = pattern.replace
    fixed = fixed_line_starts(leaves(node))
    at = 0
    for hole in replace.holes:
        yield Piece(deepened(replace.text[at : hole.at[0]], base, newline))
        capture = caught[hole.name]
        depth = base + template_indent(replace.text, hole.at[0])
        moved = moved_lines(text, capture.span, depth, fixed) if capture.span else ""
        piece = kept_piece(Item("", hole, hole.at), moved, caught)
        yield Piece(moved) if _touches_word(replace.text, hole.at) else piece
        at = hole.at[1]
    yield Piece(deepened(replace.text[at:], base, newline))


def _touches_word(text: str, span: Span) -> bool:
    """True if the hole is a part of a word or of a string: what it caught is then not a piece of code there."""
    before, after = text[: span[0]], text[span[1] :]
    in_string = any(before.count(quote) % 2 for quote in "\"'`")
    return in_string or bool(before and is_wordy(before[-1])) or bool(after and is_wordy(after[0]))


def _loses_brackets(node: SgNode, variant: Variant, pattern: Pattern) -> bool:
    """True if lines that ended inside of brackets may end outside of them now, where that ends the statement."""
    if "\n" in pattern.replace.text or "\n" not in node.text():
        return False
    if pattern.language.name == "python":
        has_block = node.find(kind="block") is not None
        return not has_block and not any(_is_bracketed(parent, node) for parent in node.ancestors())
    return variant.is_expression and _brackets(pattern.replace.text) < _brackets(pattern.match.text)


def _is_bracketed(parent: SgNode, node: SgNode) -> bool:
    start, end = span_of(node)
    kinds = [(span_of(child), child.kind()) for child in parent.children()]
    opened = any(kind in _OPENING and span[1] <= start for span, kind in kinds)
    return opened and any(kind in _CLOSING and end <= span[0] for span, kind in kinds)


def _brackets(text: str) -> int:
    return sum(text.count(mark) for mark in _OPENING)

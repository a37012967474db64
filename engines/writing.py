"""What one match becomes: the new text, piece by piece, or the reason why it has to stay.

Where match and replacement run in step, everything that both have stays as it stands in the file. Else the match is
written anew from the template, with captured lines moved to their new depth.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from ast_grep_py import SgNode

from engines.matching import Alignment, Capture, align, captures
from engines.pattern import Pattern, Step, Variant
from engines.syntax import Leaf, Span, leaves, span_of
from engines.template import Hole, Item

_PUNCTUATION = frozenset(",;")
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_LEADING_COMMA = re.compile(r"\s*,[ \t]*")
_TRAILING_COMMA = re.compile(r",\s*$")
# These stand for more, or for less, than a value: no parentheses make them one.
_NO_VALUE = re.compile(r"splat|spread|keyword_argument|pair|named_argument|unpack")
# These can do without parentheses in few places only, and not every parser minds.
_DELICATE = re.compile(r"named_expression|yield|generator_expression")


class RefusedError(Exception):
    """This match stays as it is; the message is the reason for residue."""


class Part(Enum):
    """What a piece of new text is."""

    LITERAL = auto()
    ONE = auto()
    """What a single hole caught: it must stay one piece of code."""
    MANY = auto()
    """What `$$$A` caught."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the new text.

    `no_value` marks what cannot stand where a value is wanted (`*args`, `x=1`); `home` is the only kind of code of
    which the piece may be a part as it is.
    """

    text: str
    part: Part = Part.LITERAL
    no_value: bool = False
    home: str = ""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A match and what stands there afterwards; `old` is the matched code, `comments` are those that it may have."""

    span: Span
    pieces: tuple[Piece, ...]
    is_expression: bool
    old: str
    comments: frozenset[str] = frozenset()

    def render(self, wrapped: frozenset[int], outer: bool) -> tuple[str, dict[int, Span]]:
        """The new text with these pieces (and all of it) in parentheses, and where each whole piece is in it."""
        parts: list[str] = []
        where: dict[int, Span] = {}
        length = int(outer)
        for index, piece in enumerate(self.pieces):
            text = f"({piece.text})" if index in wrapped else piece.text
            if piece.part is Part.ONE:
                where[index] = (length, length + len(text))
            parts.append(text)
            length += len(text)
        text = "".join(parts)
        return (f"({text})" if outer else text), where


def rewrite_of(node: SgNode, variant: Variant, pattern: Pattern, text: str) -> Rewrite:
    """What the match becomes. Raises RefusedError if that would lose something."""
    start, end = span_of(node)
    caught = captures(node, pattern.match)
    alignment = align(variant.reading.items, node, caught, text)
    if alignment is not None and variant.steps is not None:
        pieces = list(_InStep(pattern, variant, alignment, caught, text, (start, end)).pieces(variant.steps))
    else:
        _check_nothing_lost(node, variant, alignment, caught)
        pieces = list(_anew(pattern, caught, text, node))
    comments = pattern.replace_comments | {leaf.text for leaf in leaves(node) if leaf.is_comment}
    return Rewrite(
        (start, end), _commas_mended(_joined(pieces)), variant.is_expression, text[start:end], comments
    )


class _InStep:
    def __init__(
        self,
        pattern: Pattern,
        variant: Variant,
        alignment: Alignment,
        caught: dict[str, Capture],
        text: str,
        span: Span,
    ) -> None:
        self._match, self._replace = pattern.match.text, pattern.replace.text
        self._old, self._new = variant.reading.items, pattern.replace_items
        self._spans, self._extras = alignment.spans, alignment.extras
        self._caught, self._text = caught, text
        self._start, self._end = span

    def pieces(self, steps: Sequence[Step]) -> Iterator[Piece]:
        at = self._start
        for step in steps:
            if not step.keep:
                region = self._region(step)
                self._check_region(step, region)
                yield Piece(self._text[at : region[0]])
                yield from self._changed(step, region)
                at = region[1]
                continue
            for index in range(step.old.start, step.old.stop):
                start, end = self._spans[index]
                yield Piece(self._text[at:start])
                yield _kept(self._old[index], self._text[start:end], self._caught)
                at = end
        yield Piece(self._text[at : self._end])

    def _region(self, step: Step) -> Span:
        """From the end of the token before to the start of the token after what goes."""
        start = self._spans[step.old.start - 1][1] if step.old.start > 0 else self._start
        end = self._spans[step.old.stop][0] if step.old.stop < len(self._old) else self._end
        return start, end

    def _check_region(self, step: Step, region: Span) -> None:
        inner = self._inner(step, region)
        for extra in self._extras:
            if inner[0] <= extra.start and extra.end <= inner[1]:
                _refuse_extra(extra)

    def _inner(self, step: Step, region: Span) -> Span:
        """The tokens that go, without the layout around them (which stays, with its comments)."""
        if step.old.start == step.old.stop:
            return region[1], region[1]
        return self._spans[step.old.start][0], self._spans[step.old.stop - 1][1]

    def _changed(self, step: Step, region: Span) -> Iterator[Piece]:
        inner = self._inner(step, region)
        left, right = self._text[region[0] : inner[0]], self._text[inner[1] : region[1]]
        if step.new.start == step.new.stop:
            yield Piece(self._gap_of_deletion(step, region, inner))
            return
        old_left, old_right = _gaps(self._match, self._old, step.old)
        new_left, new_right = _gaps(self._replace, self._new, step.new)
        if step.old.start == step.old.stop:  # nothing goes: what comes stands right behind the token before
            yield Piece(new_left)
            yield from self._core(step)
            yield Piece(left if left.strip() or "\n" in left else new_right)
            return
        before, after = self._before(region[0]), self._text[region[1] : region[1] + 1]
        yield Piece(_spaced(before, _chosen(left, old_left, new_left), self._first(step), new_left))
        yield from self._core(step)
        yield Piece(_spaced(self._last(step), _chosen(right, old_right, new_right), after, new_right))

    def _gap_of_deletion(self, step: Step, region: Span, inner: Span) -> str:
        left, right = self._text[region[0] : inner[0]], self._text[inner[1] : region[1]]
        noted = [self._has_comment(region[0], inner[0]), self._has_comment(inner[1], region[1])]
        if all(noted):
            raise RefusedError("a comment inside would be lost")
        if any(noted):
            return left if noted[0] else right
        before, after = self._before(region[0]), self._text[region[1] : region[1] + 1]
        start = self._new[step.new.start - 1].at[1] if step.new.start > 0 else 0
        gap = self._replace[start : _at(self._new, step.new.stop, self._replace)]
        if not gap and "\n" in right and before not in _OPENING:
            return right.lstrip(", \t")  # the closing bracket stays on a line of its own
        return _spaced(before, gap, after)

    def _has_comment(self, start: int, end: int) -> bool:
        return any(extra.is_comment and start <= extra.start and extra.end <= end for extra in self._extras)

    def _core(self, step: Step) -> Iterator[Piece]:
        at = None
        for item in self._new[step.new]:
            if at is not None:
                yield Piece(self._replace[at : item.at[0]])
            if item.hole is None:
                yield Piece(item.text)
            else:
                yield _kept(item, _caught_text(item.hole, self._caught, self._text), self._caught)
            at = item.at[1]

    def _before(self, position: int) -> str:
        return self._text[position - 1 : position] if position > self._start else ""

    def _first(self, step: Step) -> str:
        item = self._new[step.new.start]
        return _caught_text(item.hole, self._caught, self._text)[:1] if item.hole else item.text[:1]

    def _last(self, step: Step) -> str:
        item = self._new[step.new.stop - 1]
        return _caught_text(item.hole, self._caught, self._text)[-1:] if item.hole else item.text[-1:]


def _gaps(text: str, items: Sequence[Item], part: slice) -> tuple[str, str]:
    """A template's layout left and right of a slice of its tokens."""
    left = text[items[part.start - 1].at[1] if part.start > 0 else 0 : _at(items, part.start, text)]
    last = items[part.stop - 1].at[1] if part.stop > 0 else 0
    return left, text[last : items[part.stop].at[0] if part.stop < len(items) else len(text)]


def _at(items: Sequence[Item], index: int, text: str) -> int:
    return items[index].at[0] if index < len(items) else len(text)


def _chosen(source: str, old: str, new: str) -> str:
    """The file's own layout, unless the rule changes the layout there; a comment always stays."""
    return source if old == new or source.strip() else new


def _spaced(before: str, gap: str, after: str, wanted: str = "") -> str:
    """Two words must not run together: `x==None` becomes `x is None`, and so does `(x)==None`."""
    if gap or not before or not after:
        return gap
    both = _is_wordy(before[-1]) and _is_wordy(after[0])
    one = _is_wordy(before[-1]) or _is_wordy(after[0])
    return " " if both or (one and wanted) else ""


def _is_wordy(character: str) -> bool:
    return character.isalnum() or character == "_"


def _kept(item: Item, text: str, caught: dict[str, Capture]) -> Piece:
    if item.hole is None:
        return Piece(text)
    capture = caught[item.hole.name]
    if item.hole.is_many:
        return Piece(text, Part.MANY)
    if not capture.kinds:  # an operator or a keyword
        return Piece(text)
    no_value = any(_NO_VALUE.search(kind) for kind in capture.kinds)
    is_delicate = no_value or any(_DELICATE.search(kind) for kind in capture.kinds)
    return Piece(text, Part.ONE, no_value, capture.parent if is_delicate else "")


def _caught_text(hole: Hole | None, caught: dict[str, Capture], text: str) -> str:
    span = caught[hole.name].span if hole else None
    return text[span[0] : span[1]] if span else ""


def _refuse_extra(extra: Leaf) -> None:
    if extra.is_comment:
        raise RefusedError("a comment inside would be lost")
    if extra.text not in _PUNCTUATION:
        raise RefusedError(f"it has {extra.text!r}, which the pattern does not say")


def _check_nothing_lost(
    node: SgNode, variant: Variant, alignment: Alignment | None, caught: dict[str, Capture]
) -> None:
    if alignment is not None:
        for extra in alignment.extras:
            _refuse_extra(extra)
        return
    spans = [capture.span for capture in caught.values() if capture.span]
    said = Counter(item.text for item in variant.reading.items)
    for leaf in leaves(node):
        if any(start <= leaf.start and leaf.end <= end for start, end in spans):
            continue
        if said[leaf.text] > 0:
            said[leaf.text] -= 1
        elif leaf.is_comment or not leaf.is_named:
            _refuse_extra(leaf)


def _anew(pattern: Pattern, caught: dict[str, Capture], text: str, node: SgNode) -> Iterator[Piece]:
    """The template from start to end, its lines at the depth of the match, in the file's line ends."""
    start, _ = span_of(node)
    base, newline = indent_at(text, start), newline_at(text, start)
    replace = pattern.replace
    fixed = _fixed_line_starts(node)
    at = 0
    for hole in replace.holes:
        yield Piece(_deepened(replace.text[at : hole.at[0]], base, newline))
        capture = caught[hole.name]
        depth = base + _template_indent(replace.text, hole.at[0])
        moved = _moved(text, capture.span, depth, fixed) if capture.span else ""
        piece = _kept(Item("", hole, hole.at), moved, caught)
        yield Piece(moved) if _touches_word(replace.text, hole.at) else piece
        at = hole.at[1]
    yield Piece(_deepened(replace.text[at:], base, newline))


def _touches_word(text: str, span: Span) -> bool:
    """True if the hole is a part of a word or of a string: what it caught is then not a piece of code there."""
    before, after = text[: span[0]], text[span[1] :]
    in_string = any(before.count(quote) % 2 for quote in "\"'`")
    return in_string or bool(before and _is_wordy(before[-1])) or bool(after and _is_wordy(after[0]))


def _deepened(text: str, base: str, newline: str) -> str:
    first, *rest = text.split("\n")
    return newline.join([first, *(base + line if line.strip() or line is rest[-1] else "" for line in rest)])


def _template_indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _moved(text: str, span: Span, depth: str, fixed: frozenset[int]) -> str:
    """The captured lines, from the depth of their first line to the new one; strings keep theirs."""
    start, end = span
    old = indent_at(text, start)
    if old == depth or "\n" not in text[start:end]:
        return text[start:end]
    parts: list[str] = []
    position = start
    for line in text[start:end].splitlines(keepends=True):
        movable = position > start and position not in fixed and line.startswith(old) and line.strip()
        parts.append(depth + line[len(old) :] if movable else line)
        position += len(line)
    return "".join(parts)


def _fixed_line_starts(node: SgNode) -> frozenset[int]:
    """Positions of lines that start inside a token (a string of several lines): moving them changes the string."""
    fixed: set[int] = set()
    for leaf in leaves(node):
        if "\n" in leaf.text and leaf.text.strip():
            fixed.update(leaf.start + found.end() for found in re.finditer("\n", leaf.text))
    return frozenset(fixed)


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbouring literal pieces as one."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and piece.part is Part.LITERAL and joined[-1].part is Part.LITERAL:
            joined[-1] = Piece(joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined


def _commas_mended(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Without the comma that is one too many next to an empty `$$$A`, or behind one that ends with a comma."""
    for index, piece in enumerate(pieces):
        if piece.part is not Part.MANY:
            continue
        after = pieces[index + 1].text if index + 1 < len(pieces) else ""
        following = _LEADING_COMMA.match(after)
        if following and not piece.text:
            pieces[index + 1] = Piece(after[following.end() :])
        elif following and piece.text.rstrip().endswith(","):
            pieces[index + 1] = Piece(" " + after[following.end() :])
        elif not piece.text and index > 0 and after[:1] in _CLOSING:
            pieces[index - 1] = Piece(_TRAILING_COMMA.sub("", pieces[index - 1].text), pieces[index - 1].part)
    return tuple(pieces)


def indent_at(text: str, position: int) -> str:
    """The white space at the start of the position's line."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def newline_at(text: str, position: int) -> str:
    """The line end of the position's line, or of the line before where it is the last one."""
    end = text.find("\n", position)
    if end < 0:
        end = text.rfind("\n", 0, position)
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"

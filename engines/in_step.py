"""A match that runs in step with its pattern: what match and replacement share stays as it stands in the file."""

import re
from collections.abc import Iterator, Sequence

from engines.matching import Alignment, Capture
from engines.pattern import Pattern, Step, Variant
from engines.pieces import Part, Piece, RefusedError, refuse_extra
from engines.syntax import Span
from engines.template import Hole, Item

_OPENING = frozenset("([{")
# These stand for more, or for less, than a value: no parentheses make them one.
_NO_VALUE = re.compile(r"splat|spread|keyword_argument|pair|named_argument|unpack")
# These can do without parentheses in few places only, and not every parser minds.
_DELICATE = re.compile(r"named_expression|yield|generator_expression")


class InStep:
    """One match, its tokens aligned with the pattern's."""

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
                yield kept_piece(self._old[index], self._text[start:end], self._caught)
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
                refuse_extra(extra)

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
        if region[0] == self._start or region[1] == self._end:
            return ""
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
                yield kept_piece(item, caught_text(item.hole, self._caught, self._text), self._caught)
            at = item.at[1]

    def _before(self, position: int) -> str:
        return self._text[position - 1 : position] if position > self._start else ""

    def _first(self, step: Step) -> str:
        item = self._new[step.new.start]
        return caught_text(item.hole, self._caught, self._text)[:1] if item.hole else item.text[:1]

    def _last(self, step: Step) -> str:
        item = self._new[step.new.stop - 1]
        return caught_text(item.hole, self._caught, self._text)[-1:] if item.hole else item.text[-1:]


def kept_piece(item: Item, text: str, caught: dict[str, Capture]) -> Piece:
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


def caught_text(hole: Hole | None, caught: dict[str, Capture], text: str) -> str:
    span = caught[hole.name].span if hole else None
    return text[span[0] : span[1]] if span else ""


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
    both = is_wordy(before[-1]) and is_wordy(after[0])
    one = is_wordy(before[-1]) or is_wordy(after[0])
    return " " if both or (one and wanted) else ""


def is_wordy(character: str) -> bool:
    return character.isalnum() or character == "_"

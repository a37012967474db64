"""Small edits of a text, and positions that move along with them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engines.syntax import Span


@dataclass(frozen=True, slots=True)
class Edit:
    """The text from `start` to `end` becomes `new`."""

    start: int
    end: int
    new: str

    @property
    def growth(self) -> int:
        """How much longer the text becomes."""
        return len(self.new) - (self.end - self.start)


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits; they must not overlap."""
    parts: list[str] = []
    last = 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        parts += [text[last : edit.start], edit.new]
        last = edit.end
    return "".join([*parts, text[last:]])


def moved(spans: Iterable[Span], edits: Sequence[Edit]) -> list[Span]:
    """The spans as they stand after edits outside of them."""
    return [
        (
            start + sum(edit.growth for edit in edits if edit.end <= start),
            end + sum(edit.growth for edit in edits if edit.end <= end),
        )
        for start, end in spans
    ]


def common_start(one: str, other: str) -> int:
    """How many characters two texts share at their start."""
    differing = (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))

"""Blank lines that stay where lines went: two runs of them meet, or the file begins with one.

`lint.fix` joins them as people do when they take a line out: as many as the longer run had, and at the file's top
and end no more than were there. A run with a line that is new is not touched, nor one inside a string.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from engines.languages import language
from engines.syntax import first_fault, parse

_PYTHON = language("python")
# Comparing more lines than this takes seconds; such files keep their gaps.
_MOST_LINES = 20_000
_BLANK = " \t\r\n"
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
# ruff counts it as a line end, and the parser does not.
_LONE_RETURN = re.compile(r"\r(?!\n)")


@dataclass(frozen=True, slots=True)
class Closed:
    """The text without its gaps, and the lines (counted from 1) that are gone."""

    text: str
    gone: tuple[int, ...] = ()

    def line(self, number: int) -> int:
        """Where a line of the text with gaps stands now."""
        return number - sum(one < number for one in self.gone)


def closed_gaps(before: str, after: str) -> Closed:
    """Python text after lines of it went, with the blank lines around each gap joined."""
    old, new = _LINE.findall(before), _LINE.findall(after)
    if len(new) >= len(old) or len(old) > _MOST_LINES or _LONE_RETURN.search(after):
        return Closed(after)
    came_from = _origins(old, new)
    lines = [line for run in _runs(new) for line in run[_kept(run, came_from, old, len(new)) :]]
    if not lines:
        return Closed(after)
    root = parse(after, _PYTHON)
    if first_fault(root, _PYTHON) is not None:
        return Closed(after)
    inside = [
        range(node.range().start.line + 1, node.range().end.line + 1) for node in root.find_all(kind="string")
    ]
    gone = frozenset(line for line in lines if not any(line in span for span in inside))
    kept = "".join(text for number, text in enumerate(new) if number not in gone)
    return Closed(kept, tuple(sorted(number + 1 for number in gone)))


def _origins(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """New line → old line, for the lines that stayed."""
    head = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), len(new))
    most = len(new) - head
    pairs = zip(reversed(old), reversed(new), strict=False)
    tail = min(most, next((at for at, pair in enumerate(pairs) if pair[0] != pair[1]), most))
    found = {number: number for number in range(head)}
    found |= {len(new) - 1 - back: len(old) - 1 - back for back in range(tail)}
    middle = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    for block in middle.get_matching_blocks():
        found |= {head + block.b + step: head + block.a + step for step in range(block.size)}
    return found


def _runs(lines: Sequence[str]) -> Iterator[range]:
    """Where blank lines stand, as ranges of line numbers (counted from 0)."""
    start = None
    for number, line in enumerate([*lines, "end"]):
        if not line.strip(_BLANK):
            start = number if start is None else start
        elif start is not None:
            yield range(start, number)
            start = None


def _kept(run: range, came_from: dict[int, int], old: Sequence[str], count: int) -> int:
    """How many lines of a run stay."""
    origins = [came_from[number] for number in run if number in came_from]
    if len(origins) < len(run):
        return len(run)
    if run.start == 0:
        return _blank_ones(old)
    if run.stop == count:
        return _blank_ones(old[::-1])
    lengths = [1]
    for above, one in pairwise(origins):
        if one == above + 1:
            lengths[-1] += 1
        else:
            lengths.append(1)
    return max(lengths)


def _blank_ones(lines: Sequence[str]) -> int:
    """How many blank lines stand first."""
    return next((number for number, line in enumerate(lines) if line.strip(_BLANK)), len(lines))

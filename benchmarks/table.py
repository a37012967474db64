"""How results are shown: what was measured, the figure, the limit, and whether it is kept."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement beside its limit or rival."""

    what: str
    figure: str
    limit: str
    is_kept: bool


def print_table(title: str, lines: Sequence[Line]) -> int:
    """Print the lines; the exit code: 0 if all limits are kept."""
    widths = [max(len(getattr(line, name)) for line in lines) for name in ("what", "figure", "limit")]
    print(f"\n{title}")
    for line in lines:
        cells = [line.what.ljust(widths[0]), line.figure.rjust(widths[1]), line.limit.rjust(widths[2])]
        print("  " + "   ".join(cells) + ("   kept" if line.is_kept else "   NOT KEPT"))
    return 0 if all(line.is_kept for line in lines) else 1

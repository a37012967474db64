"""The table of cases, and the hunks in which our files differ from theirs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from benchmarks.cases.case import Case
from benchmarks.cases.judging import Judgement, hunks
from benchmarks.cases.running import Outcome
from schemas.scope import Scope


@dataclass(frozen=True, slots=True)
class Row:
    """A case with all that came of it. `note` says why it was not run, or ended without a branch."""

    case: Case
    outcome: Outcome | None = None
    judgement: Judgement | None = None
    note: str = ""

    @property
    def is_failed(self) -> bool:
        """True if the case was run and did not pass its judge, or did not land whole. What is not present did not fail."""
        if self.outcome is None:
            return False
        is_whole = self.outcome.report is not None and not self.outcome.report.unlanded
        return self.judgement is None or not self.judgement.is_passed or not is_whole


def show_table(rows: Sequence[Row], console: Console) -> None:
    """One line a case; below, what a reader should know of each."""
    table = Table(box=None, pad_edge=False, header_style="bold", caption_justify="left")
    table.add_column("")
    table.add_column("Case", no_wrap=True)
    for name in (
        "Equal",
        "Alike",
        "Differ",
        "Missing",
        "Extra",
        "Judge",
        "Residue",
        "Tests",
        "Wall",
        "Actions",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)
    for row in rows:
        for text in _remarks(row):
            console.print(
                f"  {row.case.case}: {text}", style="dim", highlight=False, soft_wrap=True, markup=False
            )


def show_diff(row: Row, clone: Path, result: str, console: Console) -> None:
    """Every file that is not byte for byte the real commit's: theirs `-`, ours `+`."""
    if row.judgement is None:
        return
    made = row.judgement
    titles = ("only its layout differs", "differs", "missing", "extra")
    for title, paths in zip(titles, (made.alike, made.differ, made.missing, made.extra), strict=True):
        for path in paths:
            console.print(f"{row.case.case}: {title}: {path}", style="bold", markup=False)
            text = hunks(row.case, clone, result, path)
            console.print(Syntax(text, "diff", background_color="default", word_wrap=False))


def _cells(row: Row) -> list[Text | str]:
    name = row.case.case
    if row.outcome is None or row.judgement is None:
        mark = Text("✘", style="red") if row.is_failed else Text("-", style="dim")
        wall = f"{row.outcome.wall_s:.1f} s" if row.outcome else ""
        return [mark, name, *[""] * 8, wall, ""]
    made, report = row.judgement, row.outcome.report
    mark = Text("✘", style="red") if row.is_failed else Text("✔", style="green")
    counts = " ".join(f"{one.before}→{one.after}" for one in made.counts)
    return [
        mark,
        name,
        f"{len(made.equal)}/{made.real}",
        str(len(made.alike)),
        str(len(made.differ)),
        str(len(made.missing)),
        str(len(made.extra)),
        counts,
        str(sum(rule.residue_count for rule in report.rules)) if report else "",
        _tests(row),
        f"{row.outcome.wall_s:.1f} s",
        str(report.actions) if report else "",
    ]


def _tests(row: Row) -> str:
    report = row.outcome.report if row.outcome else None
    if report is None or report.untested or report.baseline is None:
        return "not run"
    tested = [rule.tested for rule in report.rules if rule.tested is not None]
    after = tested[-1].passed if tested else 0
    return f"{report.baseline.passed}→{after}"


def _remarks(row: Row) -> list[str]:
    found = [row.note] if row.note else []
    if row.judgement is None:
        return found
    made = row.judgement
    found += [
        f"the judge wants at most {one.count.at_most} of {one.count.grep!r}, {one.after} are left"
        for one in made.counts
        if not one.is_reached
    ]
    found += [f"touched outside: {path}" for path in made.outside]
    found += _differences(row.case, (*made.alike, *made.differ, *made.missing, *made.extra))
    report = row.outcome.report if row.outcome else None
    found += [
        f"not landed: {one.path or one.rule}: {one.reason}" for one in (report.unlanded if report else ())
    ]
    return found


def _differences(case: Case, paths: Sequence[str]) -> list[str]:
    """Why these paths are not the real commit's; those of one reason in one line."""
    by_reason: dict[str, list[str]] = {}
    for path in paths:
        found = (why for glob, why in case.differs.items() if Scope(include=(glob,)).admits(path))
        by_reason.setdefault(next(found, "no reason known"), []).append(path)
    return [f"{why}: {_listed(found)}" for why, found in by_reason.items()]


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more

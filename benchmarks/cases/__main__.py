"""`python -m benchmarks.cases [ID…]`, `make cases`: refactors that people made, made again and compared.

Repositories are not part of this project: a case is run where a clone is present under --repos (or ROLECALL_CASES).
Ends with 1 if a judge fails or a path outside of the case was touched.
"""

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from benchmarks.cases.case import Case, chosen_cases
from benchmarks.cases.judging import judge
from benchmarks.cases.running import BRANCH, run_case
from benchmarks.cases.scratch import find_repository, has_commits, scratch_clone, test_environment
from benchmarks.cases.showing import Row, show_diff, show_table
from benchmarks.endings import unwind_on_sigterm


def main() -> int:
    """Run the chosen cases and print what came of them."""
    unwind_on_sigterm()
    asked = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 160)
    rows: list[Row] = []
    with ExitStack() as stack:
        stack.callback(lambda: show_table(rows, console))  # also of a run that is stopped half-way
        scratch = asked.keep or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="rolecall-cases-"))
        )
        for case in chosen_cases(asked.cases):
            with console.status(case.case):
                rows.append(_run(case, asked, scratch.resolve(), console))
    return int(any(row.is_failed for row in rows))


def _run(case: Case, asked: argparse.Namespace, scratch: Path, console: Console) -> Row:
    repository = find_repository(asked.repos, case) if asked.repos else None
    how = f"git clone --bare https://github.com/{case.repository} FOLDER/{case.repository.replace('/', '+')}"
    if repository is None:
        return Row(case, note=f"not present: {how}, then --repos FOLDER or ROLECALL_CASES=FOLDER")
    if not has_commits(repository, case):
        return Row(case, note=f"{repository} has not both commits of the case; a full clone has: {how}")
    folder = scratch / case.case
    clone = scratch_clone(repository, case, folder)
    environment, note = None, ""
    if asked.tests and case.tests is not None:
        made = test_environment(case.tests, clone, folder)
        environment, note = (made, "") if isinstance(made, Path) else (None, f"tests not run: {made}")
    outcome = run_case(case, clone, folder, environment=environment, solo=not asked.stack)
    if not outcome.is_delivered:
        reason = outcome.report.reason if outcome.report else ""
        last = outcome.said.strip().splitlines()[-3:]
        return Row(case, outcome, note=f"no branch (exit {outcome.exit_code}): {reason or ' '.join(last)}")
    row = Row(case, outcome, judge(case, clone, BRANCH), note)
    if asked.diff:
        show_diff(row, clone, BRANCH, console)
    return row


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cases", description=__doc__)
    default = os.environ.get("ROLECALL_CASES")
    parser.add_argument(
        "cases", nargs="*", metavar="ID", help="cases, or beginnings of their names (default: all)"
    )
    parser.add_argument("--repos", type=Path, default=Path(default) if default else None, metavar="FOLDER",
                        help="where the clones are (default: ROLECALL_CASES)")  # fmt: skip
    parser.add_argument("--keep", type=Path, metavar="FOLDER",
                        help="keep scratch clones and test environments here, and use them again")  # fmt: skip
    parser.add_argument(
        "--tests", action="store_true", help="run the repositories' tests where a case says how"
    )
    parser.add_argument(
        "--stack", action="store_true", help="separate processes and RabbitMQ instead of one process"
    )
    parser.add_argument("--diff", action="store_true", help="show every hunk that is not the real commit's")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

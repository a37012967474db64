"""The gate `ruff`: nothing new for E9 and F (syntax, undefined names, unused imports), by ruff without any settings.

Counted per file and rule against the base, so findings that were there before do not count and moved lines do not
matter. An import that is unused now is told and no fault in two cases: after a `lint.fix`, whose author named ruff's
rules (its own fix for F401 is one of them), and in an `__init__.py`, where others may import it from. The files are written under numbered folders with their own names: ruff treats `__init__.py` and `.pyi`
differently, and leaves out folders called `build` or `venv`.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from engines.ruff import run_ruff
from reviewer.case import MAX_FINDINGS, Case, Change, GateReport, could_not_run, finding, judge
from reviewer.text import declared_encoding, decoded
from schemas.errors import RolecallError
from schemas.handoff import Finding
from schemas.words import Severity

_RULES = "E9,F"
_ENDINGS = (".py", ".pyi")
# The newest that ruff knows for sure: an older target calls newer syntax an error.
_TARGET = "py313"
_SYNTAX = "invalid-syntax"
_UNUSED_IMPORT = "F401"


@dataclass(frozen=True, slots=True)
class _Lint:
    """One diagnostic: rule, line and what it says (which does not move with the line)."""

    rule: str
    line: int
    text: str


def ruff(case: Case, scratch: Path) -> GateReport:
    """Compare ruff's findings before and after for every changed Python file."""
    python = [change for change in case.changes if change.path.endswith(_ENDINGS) and change.has_text]
    readable = [change for change in python if _both_readable(change)]
    counts = {"files": len(readable), "unreadable": len(python) - len(readable)}
    if not readable:
        return judge("ruff", [], clean="no Python file to look at", counts=counts)
    target = max(_TARGET, str(case.input.get("target") or ""), key=_number)
    try:
        before = _lints(scratch / "before", {n: c.before for n, c in enumerate(readable)}, readable, target)
        after = _lints(scratch / "after", {n: c.after for n, c in enumerate(readable)}, readable, target)
    except (RolecallError, OSError) as error:
        return could_not_run("ruff", f"ruff could not run: {error}")
    fresh = [
        (change, one)
        for n, change in enumerate(readable)
        for one in _new(before.get(n, []), after.get(n, []))
    ]
    told = [_finding(*one) for one in fresh if _is_left_over(case, *one)]
    found = [_finding(*one) for one in fresh if not _is_left_over(case, *one)]
    counts |= {"before": sum(map(len, before.values())), "after": sum(map(len, after.values()))}
    report = judge("ruff", found, clean=f"nothing new for {_RULES}", counts=counts)
    return _with_left_over(report, told) if told else report


def _number(target: str) -> int:
    return int(target.removeprefix("py3") or 0)


def _both_readable(change: Change) -> bool:
    """Files that Python itself cannot decode, before or after, are not for ruff; other gates look at their bytes."""
    return all(
        data is None or _as_utf8(change.path, data) is not None for data in (change.before, change.after)
    )


def _as_utf8(path: str, data: bytes) -> bytes | None:
    """ruff reads UTF-8 only (and says "all passed" of what it cannot read)."""
    text = decoded(data, declared_encoding(path, data))
    return None if text is None else text.encode("utf-8", "surrogatepass")


def _lints(
    folder: Path, files: Mapping[int, bytes | None], changes: Sequence[Change], target: str
) -> dict[int, list[_Lint]]:
    """ruff's findings by the number of the file."""
    for number, data in files.items():
        if data is None:
            continue
        place = folder / str(number) / PurePosixPath(changes[number].path).name
        place.parent.mkdir(parents=True)
        place.write_bytes(_as_utf8(changes[number].path, data) or b"")
    folder.mkdir(parents=True, exist_ok=True)
    output = run_ruff(
        ["check", "--isolated", "--no-cache", "--no-respect-gitignore", f"--select={_RULES}", f"--target-version={target}",
         "--output-format=json", "--exit-zero", "."],
        cwd=folder,
    )  # fmt: skip
    by_file: dict[int, list[_Lint]] = {}
    for row in json.loads(output):
        number = int(Path(row["filename"]).relative_to(folder.resolve()).parts[0])
        by_file.setdefault(number, []).append(_lint(row))
    return by_file


def _lint(row: Mapping[str, Any]) -> _Lint:
    return _Lint(
        rule=row.get("code") or _SYNTAX,
        line=int((row.get("location") or {}).get("row", 0)),
        text=row["message"],
    )


def _new(before: Sequence[_Lint], after: Sequence[_Lint]) -> list[_Lint]:
    """Of the rules with more findings than before: the findings whose words are new."""
    had, has = Counter(one.rule for one in before), Counter(one.rule for one in after)
    known = Counter((one.rule, one.text) for one in before)
    fresh = []
    for one in after:
        if has[one.rule] <= had[one.rule]:
            continue
        if known[one.rule, one.text]:
            known[one.rule, one.text] -= 1
        else:
            fresh.append(one)
    return fresh


def _is_left_over(case: Case, change: Change, lint: _Lint) -> bool:
    may_stay = (
        case.contract.partition("@")[0] == "lint.fix" or PurePosixPath(change.path).name == "__init__.py"
    )
    return lint.rule == _UNUSED_IMPORT and may_stay


def _with_left_over(report: GateReport, told: Sequence[Finding]) -> GateReport:
    warnings = tuple(one.model_copy(update={"severity": Severity.WARNING}) for one in told[:MAX_FINDINGS])
    claim = f"{report.claim}, but {len(told)} imports are unused now (`F401` among the rules removes them)"
    counts = {**(report.counts or {}), "unused_imports": len(told)}
    return replace(report, claim=claim, counts=counts, findings=(*report.findings, *warnings))


def _finding(change: Change, lint: _Lint) -> Finding:
    return finding("ruff", f"New: {lint.rule} {lint.text}.", path=change.path, line=lint.line)

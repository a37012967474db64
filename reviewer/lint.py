"""The gate `ruff`: nothing new for E9 and F (syntax, undefined names, unused imports), by ruff without any settings.

Counted per file and rule against the base, so findings that were there before do not count and moved lines do not
matter. The files are written under numbered folders with their own names: ruff treats `__init__.py` and `.pyi`
differently, and leaves out folders called `build` or `venv`.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from engines.ruff import run_ruff
from reviewer.case import Case, Change, GateReport, could_not_run, finding, judge
from reviewer.text import declared_encoding, decoded
from schemas.errors import RolecallError
from schemas.handoff import Finding

_RULES = "E9,F"
_ENDINGS = (".py", ".pyi")
# The newest that ruff knows for sure: an older target calls newer syntax an error.
_TARGET = "py313"
_SYNTAX = "invalid-syntax"


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
    target = str(case.input.get("target") or _TARGET)
    try:
        before = _lints(scratch / "before", {n: c.before for n, c in enumerate(readable)}, readable, target)
        after = _lints(scratch / "after", {n: c.after for n, c in enumerate(readable)}, readable, target)
    except (RolecallError, OSError) as error:
        return could_not_run("ruff", f"ruff could not run: {error}")
    found = [
        one for n, change in enumerate(readable) for one in _new(change, before.get(n, []), after.get(n, []))
    ]
    counts |= {"before": sum(map(len, before.values())), "after": sum(map(len, after.values()))}
    return judge("ruff", found, clean=f"nothing new for {_RULES}", counts=counts)


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


def _new(change: Change, before: Sequence[_Lint], after: Sequence[_Lint]) -> list[Finding]:
    """Rules with more findings than before; of those, the findings whose words are new."""
    had, has = Counter(one.rule for one in before), Counter(one.rule for one in after)
    found = []
    for rule in sorted(rule for rule in has if has[rule] > had[rule]):
        known = Counter(one.text for one in before if one.rule == rule)
        fresh = []
        for one in (one for one in after if one.rule == rule):
            if known[one.text]:
                known[one.text] -= 1
            else:
                fresh.append(one)
        found += [
            finding("ruff", f"New: {rule} {one.text}.", path=change.path, line=one.line) for one in fresh
        ]
    return found

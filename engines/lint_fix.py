"""`lint.fix`: ruff's own fixes for named rules, on a folder with the files of the view.

What ruff reports and does not fix is residue, and so is every file that it could not read or parse: ruff itself only
warns of those, and then says that all is well.
"""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engines.api import EngineResult, FileResult, apply_files, quote
from engines.gaps import Closed, closed_gaps
from engines.languages import ending_of
from engines.ruff import RUFF_VERSION, check_rules, check_target, ruff_result
from engines.ruff_tree import is_safe, packages_digest, write_tree
from engines.source import declared_encoding
from schemas.contracts import canonical_json
from schemas.errors import ContractError, WorkspaceError, at_key
from schemas.handoff import Residue
from workspace.view import TreeView

# Part of every commit's digest: raise it when the same rule would give other bytes.
_REVISION = 2
_SYNTAX = "invalid-syntax"
_NOT_LINTED = re.compile(r"Failed to (?:lint|read) (.+?): (.+)")
# ruff gives a file up when its fixes chase each other or break the syntax, and names it in backquotes.
_GIVEN_UP = re.compile(r"(?:Failed to converge|Fix introduced a syntax error).*?contents of `([^`]+)`", re.S)


@dataclass(frozen=True, slots=True)
class _Report:
    """What ruff said of one file: (rule, line, message, whether an unsafe fix is there)."""

    rows: tuple[tuple[str, int, str, bool], ...]

    @property
    def is_broken(self) -> bool:
        """True if ruff could not parse the file."""
        return any(rule == _SYNTAX for rule, *_ in self.rows)

    def moved(self, closed: Closed) -> "_Report":
        """The same with lines as they are without the gaps."""
        return _Report(
            tuple((rule, closed.line(line), message, unsafe) for rule, line, message, unsafe in self.rows)
        )


class LintFix:
    """The engine of `lint.fix`."""

    contract = "lint.fix"
    name = "ruff"
    version = f"{RUFF_VERSION}+r{_REVISION}"

    def check(self, input: Mapping[str, Any]) -> None:
        with at_key("rules"):
            check_rules(tuple(input["rules"]))
        if input.get("target"):
            with at_key("target"):
                check_target(str(input["target"]))

    def wants(self, input: Mapping[str, Any], path: str) -> bool:
        return ending_of(path) in ("py", "pyi")

    def literals(self, input: Mapping[str, Any]) -> tuple[bytes, ...] | None:
        return None

    def apply(self, input: Mapping[str, Any], view: TreeView) -> EngineResult:
        self.check(input)
        return apply_files(self, input, view)

    def selects(self, input: Mapping[str, Any], view: TreeView) -> list[str]:
        paths = [path for path in view.paths() if self.wants(input, path)]
        if input.get("touched_only") and input.get("touched"):
            touched = view.changed_since(input["touched"])
            paths = [path for path in paths if path in touched]
        return paths

    def remembered_as(self, input: Mapping[str, Any], view: TreeView) -> str | None:
        if input.get("config") == "repository":
            return None
        # Which files are looked at does not change what comes of one.
        asked = {key: value for key, value in input.items() if key not in ("touched", "touched_only")}
        return canonical_json({"input": asked, "packages": packages_digest(view)})

    def each(
        self, input: Mapping[str, Any], view: TreeView, paths: Sequence[str]
    ) -> Iterator[tuple[str, FileResult]]:
        files: dict[str, bytes] = {}
        for path, data in view.read_many(paths):
            reason = _unfit(path, data)
            if reason:
                yield path, FileResult(residue=(Residue(path=path, reason=reason),))
            else:
                files[path] = data
        if not files:
            return
        with tempfile.TemporaryDirectory(prefix="rolecall-lint-") as folder:
            made = _Fixing(Path(folder).resolve(), input, view, files).run()
        for path, data in files.items():
            yield path, made.result(path, data)

    def account(
        self, input: Mapping[str, Any], made: EngineResult, counts: Mapping[str, int]
    ) -> EngineResult:
        return replace(made, extras={"by_rule": dict(sorted(counts.items()))})


@dataclass(frozen=True, slots=True)
class _Made:
    """What came of ruff: the files afterwards, its reports before and after, and files that it gave up."""

    after: Mapping[str, bytes]
    reports_before: Mapping[str, _Report]
    reports_after: Mapping[str, _Report]
    given_up: Mapping[str, str]

    def result(self, path: str, data: bytes) -> FileResult:
        """What came of one file."""
        residue = tuple(sorted(self._residue(path, data), key=lambda one: one.line))
        if self.after[path] == data:
            return FileResult(residue=residue)
        fixed = self._fixed(path)
        return FileResult(self.after[path], max(1, sum(fixed.values())), residue, counts=fixed)

    def _fixed(self, path: str) -> Counter[str]:
        """How many findings of each rule are gone."""
        before = Counter(rule for rule, *_ in _rows(self.reports_before, path))
        return before - Counter(rule for rule, *_ in _rows(self.reports_after, path))

    def _residue(self, path: str, data: bytes) -> Iterator[Residue]:
        """What ruff left in the file, and why."""
        if path in self.given_up:
            yield Residue(path=path, reason=f"file left alone: {self.given_up[path]}")
        lines = self.after[path].decode("utf-8", "replace").splitlines()
        report = self.reports_after.get(path, _Report(()))
        for rule, line, message, has_unsafe_fix in report.rows:
            text = quote(lines[line - 1]) if 0 < line <= len(lines) else ""
            if rule == _SYNTAX:
                yield Residue(path=path, line=line, text=text, reason=f"does not parse: {message}")
                return
            hint = " (ruff has an unsafe fix for it: `unsafe: true`)" if has_unsafe_fix else ""
            yield Residue(path=path, line=line, text=text, reason=f"{rule} not fixed: {message}{hint}")


def _rows(reports: Mapping[str, _Report], path: str) -> Sequence[tuple[str, int, str, bool]]:
    return reports[path].rows if path in reports else ()


class _Fixing:
    def __init__(
        self, folder: Path, input: Mapping[str, Any], view: TreeView, files: Mapping[str, bytes]
    ) -> None:
        self._folder = folder
        self._files = files
        self._with_settings = input.get("config") == "repository"
        write_tree(folder, files, view, with_settings=self._with_settings)
        self._arguments = [
            "check",
            ".",
            "--no-cache",
            "--exit-zero",
            "--no-fix-only",
            "--no-show-fixes",
            "--no-respect-gitignore",
            "--output-format=json",
            f"--select={','.join(input['rules'])}",
            "--unsafe-fixes" if input.get("unsafe") else "--no-unsafe-fixes",
        ]
        if input.get("target"):
            self._arguments.append(f"--target-version={input['target']}")
        if not self._with_settings:
            # Without settings nothing is left out, not even folders called `build` or `venv`.
            self._arguments += ["--isolated", "--exclude=:nothing:"]

    def run(self) -> _Made:
        before, _ = self._ruff("--no-fix")
        after, errors = self._ruff("--fix")
        given_up = {self._relative(path): why.strip() for path, why in _NOT_LINTED.findall(errors)}
        given_up |= {
            self._relative(path): "ruff's fixes do not come to an end" for path in _GIVEN_UP.findall(errors)
        }
        results = {path: (self._folder / path).read_bytes() for path in self._files}
        for path in [path for path in given_up if path in results]:
            results[path] = self._files[path]
            after[path] = before.get(path, _Report(()))
        for path in [path for path, data in results.items() if data != self._files[path]]:
            closed = _closed(self._files[path], results[path])
            results[path] = closed.text.encode("utf-8")
            after[path] = after.get(path, _Report(())).moved(closed)
        return _Made(results, before, after, given_up)

    def _ruff(self, mode: str) -> tuple[dict[str, _Report], str]:
        try:
            result = ruff_result([*self._arguments, mode], cwd=self._folder)
        except WorkspaceError as error:
            if not self._with_settings:
                raise
            # Without the repository's settings ruff has no reason to refuse: they are the author's to mend.
            raise ContractError(
                f"With the repository's settings: {error}", suggestion="`config: isolated` does without them."
            ) from error
        rows: dict[str, list[tuple[str, int, str, bool]]] = {}
        for row in json.loads(result.stdout or b"[]"):
            rows.setdefault(self._relative(row["filename"]), []).append(_row(row))
        reports = {path: _Report(tuple(sorted(found))) for path, found in rows.items() if path in self._files}
        return reports, result.stderr

    def _relative(self, name: str) -> str:
        path = Path(name)
        return path.relative_to(self._folder).as_posix() if path.is_absolute() else path.as_posix()


def _closed(before: bytes, after: bytes) -> Closed:
    """What ruff made of a file, without the gaps; a byte order mark is no part of the first line."""
    mark = "\ufeff" if after.startswith(b"\xef\xbb\xbf") else ""
    closed = closed_gaps(before.decode().removeprefix("\ufeff"), after.decode().removeprefix("\ufeff"))
    return Closed(mark + closed.text, closed.gone)


def _row(row: Mapping[str, Any]) -> tuple[str, int, str, bool]:
    location, fix = row.get("location") or {}, row.get("fix") or {}
    rule = str(row.get("code") or _SYNTAX)
    return rule, int(location.get("row", 0)), str(row["message"]), fix.get("applicability") == "unsafe"


def _unfit(path: str, data: bytes) -> str:
    """Why ruff cannot be given the file; empty if it can."""
    if not is_safe(path):
        return "its name is not UTF-8, so ruff cannot report about it"
    declared = declared_encoding(data)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return (
            f"is {declared}, and ruff reads UTF-8 only"
            if declared
            else "is not UTF-8, and ruff reads nothing else"
        )
    if declared not in (None, "utf-8") and not data.isascii():
        return f"declares {declared} but ruff would read it as UTF-8"
    return ""

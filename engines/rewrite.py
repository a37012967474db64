"""`rewrite.pattern`: structural search and replace with ast-grep, in process, to a fixpoint.

Nothing outside the matches and their imports changes. A file that cannot be read or parsed is left and told, a match
that cannot be changed without harm too, and a result that would not parse is never written.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from ast_grep_py import SgNode

from engines.api import EngineResult, FileResult, apply_files, quote, transform_each
from engines.edits import common_start
from engines.fixpoint import Applied, EndlessError, apply_pattern, find_matches
from engines.go_imports import GoImports, wanted_packages
from engines.imports import ImportKeeper, Kept
from engines.js_imports import JsImports, wanted_bindings
from engines.languages import Language, language, language_of
from engines.other_imports import OtherImports
from engines.pattern import Pattern, compile_rule
from engines.pieces import RefusedError
from engines.python_imports import wanted_names
from engines.python_keeper import PythonImports
from engines.python_names import Role, role_of
from engines.python_places import function_refusal
from engines.python_refusal import python_refusal
from engines.source import UnreadableError, is_wide, read_source
from engines.syntax import first_fault, line_of, parse
from schemas.contracts import canonical_json
from schemas.errors import ContractError, at_key
from schemas.handoff import Residue, RiskNote
from schemas.words import Severity
from workspace.view import TreeView

_JS = ("javascript", "typescript", "tsx")
# Part of every commit's digest: raise it when the same rule would give other bytes.
_REVISION = 2


class PatternRewrite:
    """The engine of `rewrite.pattern`."""

    contract = "rewrite.pattern"
    name = "ast-grep"
    version = f"{version('ast-grep-py')}+r{_REVISION}"

    def check(self, input: Mapping[str, Any]) -> None:
        compile_rule(input)
        with at_key("imports", "add"):
            _keeper("", language(input["language"]), input)

    def wants(self, input: Mapping[str, Any], path: str) -> bool:
        return language_of(path) is language(input["language"])

    def literals(self, input: Mapping[str, Any]) -> tuple[bytes, ...] | None:
        return compile_rule(input).literals or None

    def apply(self, input: Mapping[str, Any], view: TreeView) -> EngineResult:
        self.check(input)
        return apply_files(self, input, view)

    def selects(self, input: Mapping[str, Any], view: TreeView) -> list[str]:
        return [path for path in view.paths() if self.wants(input, path)]

    def remembered_as(self, input: Mapping[str, Any], view: TreeView) -> str:
        # Python itself is asked whether a result would run.
        return canonical_json({"input": input, "python": sys.version_info[:2]})

    def each(
        self, input: Mapping[str, Any], view: TreeView, paths: Sequence[str]
    ) -> Iterator[tuple[str, FileResult]]:
        return transform_each(view, paths, lambda path, data: self.rewrite(input, path, data))

    def account(
        self, input: Mapping[str, Any], made: EngineResult, counts: Mapping[str, int]
    ) -> EngineResult:
        return made

    def rewrite(self, input: Mapping[str, Any], path: str, data: bytes) -> FileResult:
        """The rule on one file."""
        pattern = compile_rule(input)
        if not is_wide(data) and not pattern.may_match(data):
            return FileResult()
        try:
            source = read_source(data, is_python=pattern.language.name == "python")
            root = parse(source.text, pattern.language)
            fault = first_fault(root, pattern.language)
            if fault is not None:
                return _left(path, line_of(source.text, fault), "does not parse")
            return _Rewrite(pattern, input, path, source.text).run(source.encode)
        except UnreadableError as error:
            return _left(path, 0, str(error))


class _Rewrite:
    def __init__(self, pattern: Pattern, input: Mapping[str, Any], path: str, text: str) -> None:
        self._pattern = pattern
        self._path = path
        self._text = text
        self._keeper = _keeper(path, pattern.language, input)

    def run(self, encode: Any) -> FileResult:
        try:
            applied = apply_pattern(self._pattern, self._text, self._admit)
        except EndlessError:
            return self._left_whole("the rule matches what it wrote, again and again")
        if not applied.sites:
            return FileResult(residue=self._residue(applied, applied.text))
        try:
            kept = self._keeper.settle(applied.text, applied.spans)
        except RefusedError as error:
            return self._left_whole(str(error))
        broken = self._broken(kept)
        if broken:
            return self._left_whole(broken)
        risks = tuple(
            RiskNote(severity=Severity.WARNING, text=text, path=self._path) for text in kept.remarks
        )
        return FileResult(encode(kept.text), applied.sites, self._residue(applied, kept.text), risks)

    def _admit(self, root: SgNode, match: SgNode) -> str | None:
        return _place_refusal(match, self._pattern) or self._keeper.admit(root, match)

    def _residue(self, applied: Applied, final: str) -> tuple[Residue, ...]:
        """What stayed, with its line in the text as it is at the end."""
        return tuple(
            Residue(
                path=self._path,
                line=_line_after(applied.text, final, span[0]),
                text=quote(one.code),
                reason=one.reason,
            )
            for span, one in sorted(applied.refused.items())
        )

    def _broken(self, kept: Kept) -> str:
        """Why the result is no code any more, although the file was; empty if it is."""
        root = parse(kept.text, self._pattern.language)
        if first_fault(root, self._pattern.language) is not None:
            return "the result would not parse"
        is_python = self._pattern.language.name == "python"
        refusal = python_refusal(root, kept.text, self._text) if is_python else None
        return f"Python would refuse the result: {refusal}" if refusal else ""

    def _left_whole(self, reason: str) -> FileResult:
        root = parse(self._text, self._pattern.language)
        matches = find_matches(self._pattern, root, self._text)
        first = min(matches, key=lambda one: one.span, default=None)
        line = line_of(self._text, first.span[0]) if first else 0
        text = quote(first.node.text()) if first else ""
        return FileResult(
            residue=(Residue(path=self._path, line=line, text=text, reason=f"file left alone: {reason}"),)
        )


def _keeper(path: str, spoken: Language, input: Mapping[str, Any]) -> ImportKeeper:
    add = tuple(input.get("imports", {}).get("add", ()))
    if spoken.name == "python":
        return PythonImports(path, wanted_names(add))
    if spoken.name == "go":
        return GoImports(wanted_packages(add))
    if spoken.name in _JS:
        return JsImports(spoken, wanted_bindings(add, spoken))
    if add:
        raise ContractError(
            f"imports.add is not known for {spoken.name}, only for python, go, {', '.join(_JS)}.",
            suggestion="Write the name with its module in `replace`, or add the import with a rule of its own.",
        )
    return OtherImports(spoken)


def _left(path: str, line: int, reason: str) -> FileResult:
    return FileResult(residue=(Residue(path=path, line=line, reason=reason),))


def _place_refusal(match: SgNode, pattern: Pattern) -> str | None:
    """Why the replacement cannot stand where the match does, or None."""
    if pattern.language.name != "python":
        return None
    if match.kind() == "identifier" and role_of(match) is Role.BIND:
        return f"`{match.text()}` is bound here, not used"
    return _f_string_refusal(match, pattern.replace.text) or function_refusal(
        match, pattern.match_items, pattern.replace_items
    )


def _f_string_refusal(match: SgNode, new: str) -> str | None:
    """Why the replacement cannot stand in the f-string around the match (before Python 3.12), or None."""
    if not any(mark in new for mark in "'\"\\\n#"):
        return None
    for parent in match.ancestors():
        if parent.kind() == "interpolation":
            string = parent.parent()
            quote_mark = string.text()[-1] if string is not None else ""
            if quote_mark in new or "\\" in new or "\n" in new or "#" in new:
                return "it stands in an f-string, which cannot hold the replacement's quotes"
    return None


def _line_after(before: str, after: str, position: int) -> int:
    """The line in `after` of a position in `before`, when the two differ in a few places (imports) above or below."""
    same_start = common_start(before, after)
    same_end = common_start(before[::-1], after[::-1])
    is_below = position > same_start and position >= len(before) - same_end
    return line_of(after, position + len(after) - len(before) if is_below else min(position, len(after)))

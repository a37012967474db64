"""`text.replace`: literal text or a regular expression, everywhere or only in code, docs, strings or comments.

Bytes outside of the matches stay, whatever the file's encoding: what is not text in it travels as lone surrogates
and comes back as the bytes that it was. Links and submodules are never looked through.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from unicodedata import unidata_version

from engines.api import EngineResult, FileResult, apply_files, quote, transform_each
from engines.languages import Language, ending_of, language_of
from engines.patience import patience
from engines.source import UnreadableError, is_binary, is_wide, read_source
from engines.syntax import Span, first_fault, line_of, parse
from engines.zones import DOCS, admitted, is_documentation, zones
from schemas.contracts import canonical_json
from schemas.errors import ContractError
from schemas.handoff import Residue, RiskNote
from schemas.words import Severity
from workspace.view import TreeView

_REVISION = 1
# Lone surrogates stand for bytes that are not text; whoever wrote them may have meant letters (latin-1 `é`).
_LETTER = r"[\w\udc80-\udcff]"
_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    find: str
    replace: str
    is_regex: bool
    places: frozenset[str]

    def new_text(self, found: re.Match[str]) -> str:
        return found.expand(self.replace) if self.is_regex else self.replace


class TextReplace:
    """The engine of `text.replace`."""

    contract = "text.replace"
    name = "rolecall-text"
    version = f"1.0+r{_REVISION}"

    def check(self, input: Mapping[str, Any]) -> None:
        _rule_of(input)

    def wants(self, input: Mapping[str, Any], path: str) -> bool:
        places = frozenset(input.get("in") or ())
        if not places:
            return True
        if is_documentation(path):
            return DOCS in places
        return places != {DOCS} or _is_python(path)

    def literals(self, input: Mapping[str, Any]) -> tuple[bytes, ...] | None:
        if input.get("regex") or not input["find"].isascii():
            return None
        return (input["find"].encode(),)

    def apply(self, input: Mapping[str, Any], view: TreeView) -> EngineResult:
        self.check(input)
        return apply_files(self, input, view)

    def selects(self, input: Mapping[str, Any], view: TreeView) -> list[str]:
        return [path for path in view.paths() if self.wants(input, path)]

    def remembered_as(self, input: Mapping[str, Any], view: TreeView) -> str:
        # Python's table of letters decides what a word is.
        return canonical_json({"input": input, "unicode": unidata_version})

    def each(
        self, input: Mapping[str, Any], view: TreeView, paths: Sequence[str]
    ) -> Iterator[tuple[str, FileResult]]:
        return transform_each(view, paths, lambda path, data: self.replace(input, path, data))

    def account(
        self, input: Mapping[str, Any], made: EngineResult, counts: Mapping[str, int]
    ) -> EngineResult:
        rule = _rule_of(input)
        if not made.sites or rule.is_regex or not rule.pattern.search(rule.replace):
            return made
        again = "What this rule writes contains what it looks for: applied to its own result it would go on."
        return replace(made, risks=(*made.risks, RiskNote(severity=Severity.INFO, text=again)))

    def replace(self, input: Mapping[str, Any], path: str, data: bytes) -> FileResult:
        """The rule on one file. Raises TooSlowError for an expression that does not come to an end on it."""
        rule = _rule_of(input)
        if not rule.is_regex:
            return self._replace(rule, input, path, data)
        with patience(rule.find, path):
            return self._replace(rule, input, path, data)

    def _replace(self, rule: _Rule, input: Mapping[str, Any], path: str, data: bytes) -> FileResult:
        literals = self.literals(input)
        if is_wide(data) or is_binary(data):
            return _no_text(rule, path, data)
        if literals and not all(word in data for word in literals):
            return FileResult()
        try:
            source = read_source(data, is_python=_is_python(path))
        except UnreadableError as error:
            return _bytewise(rule, path, data, str(error))
        return _in_text(rule, path, source.text, source.encode)


def _in_text(rule: _Rule, path: str, text: str, encode: Callable[[str], bytes]) -> FileResult:
    first = rule.pattern.search(text)
    if first is None:
        return FileResult()
    spoken = None if is_documentation(path) else language_of(path)
    spans: list[Span] = [(0, len(text))]
    if rule.places and not is_documentation(path):
        if spoken is None:
            ending = f".{ending_of(path)} files" if ending_of(path) else "a file without an ending"
            return _left(
                path, text, first, f"cannot tell {' and '.join(sorted(rule.places))} apart in {ending}"
            )
        root = parse(text, spoken)
        if first_fault(root, spoken) is not None:
            return _left(path, text, first, "does not parse, so its parts cannot be told apart")
        spans = admitted(len(text), zones(root, spoken), rule.places)
    new_text, sites = _replaced(rule, text, spans)
    if not sites or new_text == text:
        return FileResult()
    if spoken is not None and _breaks(text, new_text, spoken):
        return _left(path, text, first, "file left alone: the result would not parse")
    try:
        return FileResult(encode(new_text), sites)
    except UnreadableError as error:
        return _left(path, text, first, f"file left alone: {error}")


def _replaced(rule: _Rule, text: str, spans: list[Span]) -> tuple[str, int]:
    parts: list[str] = []
    last = sites = 0
    for found in (one for span in spans for one in _matches(rule.pattern, text, span)):
        parts += [text[last : found.start()], rule.new_text(found)]
        last = found.end()
        sites += 1
    return "".join([*parts, text[last:]]), sites


def _matches(pattern: re.Pattern[str], text: str, span: Span) -> Iterator[re.Match[str]]:
    """Matches that lie in the span; what stands around it is seen by the expression's assertions."""
    at, end = span
    while at <= end:
        found = pattern.search(text, at)
        if found is None or found.start() > end:
            return
        if found.end() > end:  # it runs out of the span: is there a shorter one?
            found = pattern.search(text, at, end)
            if found is None:
                return
        yield found
        at = found.end() if found.end() > found.start() else found.end() + 1


def _bytewise(rule: _Rule, path: str, data: bytes, why: str) -> FileResult:
    """A file that is not text in its encoding: its readable parts are, and the rest comes back as it was."""
    text = data.decode("utf-8", "surrogateescape")
    first = rule.pattern.search(text)
    if first is None:
        blind = not rule.is_regex and not rule.find.isascii()
        reason = f"{why}; only plain ASCII text can be looked for in it"
        return FileResult(residue=(Residue(path=path, reason=reason),) if blind else ())
    if rule.places and not is_documentation(path):
        return _left(path, text, first, f"{why}, so its parts cannot be told apart")
    new_text, sites = _replaced(rule, text, [(0, len(text))])
    return FileResult(new_text.encode("utf-8", "surrogateescape"), sites)


def _no_text(rule: _Rule, path: str, data: bytes) -> FileResult:
    """A binary file is never touched; that the text stands in it is told."""
    texts = [data.decode(encoding, "replace") for encoding in _WIDE] if is_wide(data) else []
    texts.append(data.decode("utf-8", "surrogateescape"))
    if not any(rule.pattern.search(text) for text in texts):
        return FileResult()
    reason = (
        "a UTF-16 or UTF-32 file that has the text" if is_wide(data) else "a binary file that has the text"
    )
    return FileResult(residue=(Residue(path=path, text=quote(rule.find), reason=reason),))


def _left(path: str, text: str, found: re.Match[str], reason: str) -> FileResult:
    line = line_of(text, found.start())
    return FileResult(residue=(Residue(path=path, line=line, text=quote(found[0]), reason=reason),))


def _breaks(old: str, new: str, spoken: Language) -> bool:
    """True if the text parsed before and does not any more."""
    return (
        first_fault(parse(new, spoken), spoken) is not None
        and first_fault(parse(old, spoken), spoken) is None
    )


def _is_python(path: str) -> bool:
    spoken = language_of(path)
    return spoken is not None and spoken.name == "python"


def _rule_of(input: Mapping[str, Any]) -> _Rule:
    return _compiled(
        input["find"],
        input["replace"],
        bool(input.get("words")),
        bool(input.get("regex")),
        frozenset(input.get("in") or ()),
    )


@lru_cache(maxsize=64)
def _compiled(find: str, replace: str, words: bool, is_regex: bool, places: frozenset[str]) -> _Rule:
    expression = find if is_regex else re.escape(find)
    if words:
        expression = f"(?<!{_LETTER})(?:{expression})(?!{_LETTER})"
    try:
        pattern = re.compile(expression, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        raise ContractError(f"`find` is not a regular expression: {error}.", place=("find",)) from error
    if pattern.match("") is not None:
        raise ContractError(
            f"`find` {find!r} matches the empty text, which is everywhere.",
            suggestion="Make it match at least one character.",
            place=("find",),
        )
    if is_regex:
        try:
            pattern.sub(replace, "")
        except (re.error, IndexError) as error:
            raise ContractError(
                f"`replace` does not fit the expression: {error}.",
                suggestion=r"Groups are \1 or \g<name>; a backslash is \\.",
                place=("replace",),
            ) from error
    elif find == replace:
        raise ContractError(
            f"`find` and `replace` are both {find!r}, so nothing would change.", place=("replace",)
        )
    return _Rule(pattern, find, replace, is_regex, places)

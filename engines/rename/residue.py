"""What has the name and was left: every whole word that nobody edited, each line with its reason."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from engines.api import quote
from engines.languages import language_of
from engines.rename.documents import Document, word_spans
from engines.rename.verdicts import FileVerdicts
from engines.source import UnreadableError, is_binary, is_wide, read_source
from engines.syntax import Span, line_of, span_of
from engines.zones import COMMENTS, DOCS, STRINGS, is_docstring, is_documentation
from schemas.handoff import Residue
from schemas.scope import path_key

# A file with more places for one reason names this many and counts the rest.
MOST_LINES = 20
_IN_QUOTES = {
    DOCS: "in a docstring (`in: [docs]` replaces it there)",
    STRINGS: "in a string (`in: [strings]` replaces it there)",
    COMMENTS: "in a comment (`in: [comments]` replaces it there)",
}
_OTHER = "another symbol of the same name"
_OUT_OF_REACH = "outside of the rule's scope, and still uses the old name"


def left_in_python(
    document: Document, verdicts: FileVerdicts, name: str, replaced: frozenset[str]
) -> list[Residue]:
    """The residue of a Python file that was looked at; `replaced` are the kinds of text where words were replaced."""
    found: list[tuple[int, str]] = []
    spans = word_spans(document.text, name)
    if document.in_reach and all(span in verdicts.symbol for span in spans):
        return []
    marked = _texts_with(document, name)
    for span in spans:
        if span in verdicts.symbol:
            if not document.in_reach:
                found.append((span[0], _OUT_OF_REACH))
            continue
        kind = next((kind for (start, end), kind in marked if start <= span[0] < end), "")
        if kind and not (kind in replaced and document.in_reach):
            found.append((span[0], verdicts.open.get(span) or _IN_QUOTES[kind]))
        elif not kind:
            found.append((span[0], _reason(verdicts, span)))
    return _as_residue(document.path, document.text, found)


def left_elsewhere(path: str, data: bytes, name: str, replaced: frozenset[str], fault: str) -> list[Residue]:
    """The residue of a file that is no Python, or none that could be looked at (`fault` says why)."""
    if name.encode() not in data and not is_wide(data):
        return []
    if is_binary(data) or is_wide(data):
        texts = (data.decode(one, "replace") for one in ("utf-8", "utf-16-le", "utf-16-be"))
        has_word = any(word_spans(text, name) for text in texts)
        return (
            [Residue(path=path, text=name, reason="a binary or UTF-16 file that has the name")]
            if has_word
            else []
        )
    text = text_of(path, data)
    if is_documentation(path):
        if DOCS in replaced:
            return []
        reason = "in documentation (`in: [docs]` replaces it there)"
    elif fault:
        reason = f"not analysed: {fault}"
    else:
        spoken = language_of(path)
        reason = (
            f"in a file of another kind ({spoken.name})"
            if spoken is not None
            else "in a file of another kind"
        )
    return _as_residue(path, text, [(start, reason) for start, _ in word_spans(text, name)])


def text_of(path: str, data: bytes) -> str:
    """The file as text, with lone surrogates for what is none."""
    spoken = language_of(path)
    try:
        return read_source(data, is_python=spoken is not None and spoken.name == "python").text
    except UnreadableError:
        return data.decode("utf-8", "surrogateescape")


def in_order(residue: Iterable[Residue]) -> tuple[Residue, ...]:
    """By path and line."""
    return tuple(sorted(residue, key=lambda one: (path_key(one.path), one.line, one.reason)))


def _reason(verdicts: FileVerdicts, span: Span) -> str:
    if span in verdicts.open:
        return verdicts.open[span]
    return _OTHER if span in verdicts.others else "not a name that Python looks up there"


def _texts_with(document: Document, name: str) -> list[tuple[Span, str]]:
    """The comments, strings and docstrings that have the name, without the code in their holes."""
    word = rf"\b{re.escape(name)}\b"
    found = [(span_of(one), COMMENTS) for one in document.root.find_all(kind="comment", regex=word)]
    for content in document.root.find_all(kind="string_content", regex=word):
        string = content.parent()
        is_doc = string is not None and is_docstring(string)
        found.append((span_of(content), DOCS if is_doc else STRINGS))
    return found


def _as_residue(path: str, text: str, places: Iterable[tuple[int, str]]) -> list[Residue]:
    by_reason: dict[str, list[int]] = {}
    for position, reason in places:
        by_reason.setdefault(reason, []).append(position)
    return [one for reason, positions in by_reason.items() for one in _told(path, text, reason, positions)]


def _told(path: str, text: str, reason: str, positions: list[int]) -> Iterator[Residue]:
    lines: Mapping[int, int] = Counter(line_of(text, one) for one in positions)
    first = {line_of(text, one): one for one in reversed(positions)}
    if reason == _OTHER:
        line = min(lines)
        count = sum(lines.values())
        told = f"{_OTHER} ({count} places in this file)" if count > 1 else _OTHER
        yield Residue(path=path, line=line, text=_line_text(text, first[line]), reason=told)
        return
    for number, line in enumerate(sorted(lines)):
        if number == MOST_LINES:
            yield Residue(path=path, line=line, reason=f"{len(lines) - number} more lines: {reason}")
            return
        yield Residue(path=path, line=line, text=_line_text(text, first[line]), reason=reason)


def _line_text(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return quote(text[start : end if end >= 0 else len(text)])

"""The gates about bytes: modes, links and submodules, encodings, line ends, conflict markers.

Bytes are sacred: whatever the rule did not ask for comes out as it went in. A text rule that names line ends, a
ruff rule about the last newline, and an effect granted at submission (`modes`, `links`, `submodules`, `encodings`, `line-ends`)
count as asking.
"""

import re
from collections import Counter
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from reviewer.case import Case, Change, GateReport, finding, judge
from reviewer.text import BOMS, bom_of, declared_encoding, decodes
from schemas.handoff import Finding
from workspace.effects import Effect
from workspace.entries import EXECUTABLE_MODE, FILE_MODE, LINK_MODE, SUBMODULE_MODE

_LINE_END = re.compile(rb"\r\n|\n|\r")
_MARKER = re.compile(rb"^(?:<{7}|>{7}|\|{7})(?: .*|\r?)$", re.MULTILINE)
# A diff of more lines than this takes seconds; then lines are compared as a bag.
_MAX_DIFF_LINES = 4000
_NAMES = {b"\n": "LF", b"\r\n": "CRLF", b"\r": "CR"}
# ruff's rules about the end of a file; a shorter selector that starts them asks for them too.
_END_OF_FILE_RULES = ("W292", "W391")


def modes(case: Case) -> GateReport:
    """No file changes its mode."""
    found = [
        finding("modes", f"The mode changes from {c.old_mode} to {c.new_mode}; keep it.", path=c.path)
        for c in case.changes
        if c.old_mode is not None and c.new_mode is not None and c.old_mode != c.new_mode
    ]
    found += [
        finding(
            "modes", f"A new file has the mode {c.new_mode}; only 100644 and 100755 are files.", path=c.path
        )
        for c in case.changes
        if c.old_mode is None and c.new_mode not in (FILE_MODE, EXECUTABLE_MODE, LINK_MODE, SUBMODULE_MODE)
    ]
    if Effect.MODES in case.allow:
        found = []
    return judge("modes", found, clean="every file keeps its mode", counts={"files": len(case.changes)})


def links(case: Case) -> GateReport:
    """No symbolic link or submodule is added, changed or removed."""
    found = []
    for change in case.changes:
        for mode, (kind, effect) in _KINDS.items():
            if mode in (change.old_mode, change.new_mode) and effect not in case.allow:
                text = f"A {kind} is touched; rules change files only."
                found.append(finding("links", text, path=change.path))
    return judge("links", found, clean="no link or submodule is touched", counts={"files": len(case.changes)})


def encodings(case: Case) -> GateReport:
    """Every edited file still decodes in its own encoding, and keeps its byte order mark."""
    found = [one for change in case.edits() for one in _encoding_of(change)]
    if Effect.ENCODINGS in case.allow:
        found = []
    return judge(
        "encodings", found, clean="every file keeps its encoding", counts={"files": len(case.edits())}
    )


def line_ends(case: Case) -> GateReport:
    """Untouched lines keep their ends, new ones take the file's, and the last newline is there or not as before."""
    edits = [change for change in case.edits() if b"\0" not in (change.before or b"")]
    found = []
    if not _asks_for_line_ends(case.input) and Effect.LINE_ENDS not in case.allow:
        found += [one for change in edits for one in _ends_of(change)]
        if not _asks_for_end_of_file(case.input):
            found += [one for change in edits for one in _last_newline_of(change)]
    return judge("line_ends", found, clean="every line keeps its end", counts={"files": len(edits)})


def conflict_markers(case: Case) -> GateReport:
    """No conflict markers that were not there before."""
    texts = [change for change in case.changes if change.has_text]
    found = []
    for change in texts:
        line = _line_of_new_marker(change.before or b"", change.after or b"")
        if line:
            text = "A conflict marker came in; resolve it."
            found.append(finding("conflict_markers", text, path=change.path, line=line))
    return judge("conflict_markers", found, clean="no conflict marker came in", counts={"files": len(texts)})


# By mode: what it is, and the effect that must be granted for it.
_KINDS = {LINK_MODE: ("symbolic link", "links"), SUBMODULE_MODE: ("submodule", "submodules")}


def _line_of_new_marker(before: bytes, after: bytes) -> int:
    """The line (from 1) of the first marker that is not among those before; 0 if there is none."""
    known = Counter(_MARKER.findall(before))
    for found in _MARKER.finditer(after):
        marker = found.group()
        if not known[marker]:
            return after.count(b"\n", 0, found.start()) + 1
        known[marker] -= 1
    return 0


def _encoding_of(change: Change) -> list[Finding]:
    before, after = change.before or b"", change.after or b""
    if bom_of(before) != bom_of(after):
        had, has = (BOMS.get(bom_of(data), "none") for data in (before, after))
        return [
            finding(
                "encodings", f"The byte order mark changes from {had} to {has}; keep it.", path=change.path
            )
        ]
    encoding = declared_encoding(change.path, before)
    if decodes(before, encoding):
        if decodes(after, encoding):
            return []
        return [
            finding("encodings", f"It was {encoding} and does not decode as such any more.", path=change.path)
        ]
    # Unknown encoding: turning all of it into UTF-8 is the mistake that happens.
    if decodes(after, "utf-8") and not after.isascii():
        return [
            finding(
                "encodings",
                "It was not UTF-8 and is now; edit the bytes, not decoded text.",
                path=change.path,
            )
        ]
    return []


def _ends_of(change: Change) -> list[Finding]:
    before, after = change.before or b"", change.after or b""
    old, new = Counter(_LINE_END.findall(before)), Counter(_LINE_END.findall(after))
    if not old:
        return []
    strange = [end for end in new if end not in old]
    if strange:
        line = _first_line_with(after, strange[0])
        text = f"It had {_styles(old)} line ends and now has {_NAMES[strange[0]]} too; keep the file's own."
        return [finding("line_ends", text, path=change.path, line=line)]
    if len(old) == 1:
        return []
    changed = _line_whose_end_changed(before, after)
    if changed:
        return [
            finding("line_ends", "An untouched line has another line end.", path=change.path, line=changed)
        ]
    main, main_now = old.most_common(1)[0][0], new.most_common(1)[0][0] if new else b""
    if new and main != main_now and new[main] < new[main_now]:
        text = f"Most lines ended in {_NAMES[main]} and now end in {_NAMES[main_now]}."
        return [finding("line_ends", text, path=change.path)]
    return []


def _line_whose_end_changed(before: bytes, after: bytes) -> int:
    """The first line (from 1) of `after` that stands unchanged in `before` but for its end; 0 if there is none."""
    old, new = _lines(before), _lines(after)
    if max(len(old), len(new)) > _MAX_DIFF_LINES:
        return _changed_end_in_bag(old, new)
    matcher = SequenceMatcher(None, [text for text, _ in old], [text for text, _ in new], autojunk=False)
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            ends = old[block.a + offset][1], new[block.b + offset][1]
            if ends[0] != ends[1] and all(ends):  # the last line may have none: another gate's business
                return block.b + offset + 1
    return 0


def _changed_end_in_bag(old: list[tuple[bytes, bytes]], new: list[tuple[bytes, bytes]]) -> int:
    """The same question without order: a text whose lines became fewer with one end and more with another."""
    lost, won = Counter(old) - Counter(new), Counter(new) - Counter(old)
    texts = {text for text, end in lost if end}
    return next(
        (n for n, (text, end) in enumerate(new, 1) if text in texts and end and (text, end) in won), 0
    )


def _lines(data: bytes) -> list[tuple[bytes, bytes]]:
    parts = re.split(rb"(\r\n|\n|\r)", data)
    ends = [*parts[1::2], b""]
    return list(zip(parts[0::2], ends, strict=True))


def _first_line_with(data: bytes, end: bytes) -> int:
    return next((n for n, (_, found) in enumerate(_lines(data), 1) if found == end), 0)


def _last_newline_of(change: Change) -> list[Finding]:
    before, after = change.before or b"", change.after or b""
    if not before or not after or before.endswith((b"\n", b"\r")) == after.endswith((b"\n", b"\r")):
        return []
    text = (
        "The newline at the end of the file went away."
        if before.endswith((b"\n", b"\r"))
        else "A newline came at the end of the file."
    )
    return [finding("line_ends", f"{text} Keep the end as it was.", path=change.path)]


def _styles(ends: Counter[bytes]) -> str:
    return " and ".join(_NAMES[end] for end, _ in ends.most_common())


def _asks_for_line_ends(given: Mapping[str, Any]) -> bool:
    """A text rule that names line ends means them."""
    texts = [given[key] for key in ("find", "replace") if isinstance(given.get(key), str)]
    words = ("\r", "\n", "\\r", "\\n", "\\s", "\\Z", "\\R") if given.get("regex") else ("\r", "\n")
    return any(word in text for text in texts for word in words)


def _asks_for_end_of_file(given: Mapping[str, Any]) -> bool:
    rules = given.get("rules")
    if not isinstance(rules, list | tuple):
        return False
    return any(rule == "ALL" or full.startswith(rule) for rule in rules for full in _END_OF_FILE_RULES)

"""Short ways to put one file through an engine."""

from collections.abc import Mapping, Sequence
from typing import Any

from engines.api import Engine, EngineResult, FileResult
from engines.rewrite import PatternRewrite
from engines.text_replace import TextReplace
from schemas.handoff import Residue
from workspace.view import DictView

REWRITE = PatternRewrite()
TEXT = TextReplace()


def pattern(match: str, replace: str, *add: str, language: str = "python") -> dict[str, Any]:
    """A `rewrite.pattern` input."""
    return {"language": language, "match": match, "replace": replace, "imports": {"add": list(add)}}


def rewrite(
    before: str | bytes, match: str, replace: str, *add: str, path: str = "a.py", language: str = "python"
) -> FileResult:
    """What the rule makes of a file."""
    given = pattern(match, replace, *add, language=language)
    REWRITE.check(given)
    return REWRITE.rewrite(given, path, before.encode() if isinstance(before, str) else before)


def rewritten(
    before: str, match: str, replace: str, *add: str, path: str = "a.py", language: str = "python"
) -> str:
    """The text afterwards; nothing may have been left."""
    result = rewrite(before, match, replace, *add, path=path, language=language)
    assert result.residue == ()
    return before if result.data is None else result.data.decode()


def left(result: FileResult) -> list[tuple[int, str]]:
    """(line, reason) of what was left in a file that did not change."""
    assert result.data is None
    return reasons(result.residue)


def reasons(residue: Sequence[Residue]) -> list[tuple[int, str]]:
    """(line, reason) of each."""
    return [(one.line, one.reason) for one in residue]


def replace_text(before: str | bytes, path: str = "a.py", /, **given: Any) -> FileResult:
    """What a `text.replace` rule (colour to color, if not said otherwise) makes of a file."""
    full = {"find": "colour", "replace": "color"} | given
    TEXT.check(full)
    return TEXT.replace(full, path, before.encode() if isinstance(before, str) else before)


def applied(engine: Engine, given: Mapping[str, Any], files: Mapping[str, str | bytes]) -> dict[str, bytes]:
    """All files afterwards."""
    return after(files, run(engine, given, files))


def run(engine: Engine, given: Mapping[str, Any], files: Mapping[str, str | bytes]) -> EngineResult:
    """The engine on these files."""
    engine.check(given)
    return engine.apply(given, DictView(as_bytes(files)))


def as_bytes(files: Mapping[str, str | bytes]) -> dict[str, bytes]:
    """Texts as UTF-8."""
    return {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}


def after(files: Mapping[str, str | bytes], result: EngineResult) -> dict[str, bytes]:
    """The files with the changes put in."""
    changed = {path: new.data for path, new in result.changes.items() if new is not None}
    return as_bytes(files) | changed

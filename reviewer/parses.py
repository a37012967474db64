"""The gate `parses`: every changed file still parses if it did before, and a new one parses.

Python by compiling (which also finds a `from __future__` that is too late), in the file's own encoding; JSON, TOML
and YAML by their parsers; what else ast-grep knows by its error nodes. Python that this Python cannot
compile even before the change (another version's syntax) is judged by error nodes too.
"""

import json
import tomllib
import warnings
from collections.abc import Callable
from enum import Enum
from pathlib import PurePosixPath

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from engines.languages import language_of
from reviewer.case import Case, Change, GateReport, finding, judge
from reviewer.error_nodes import count_error_nodes
from reviewer.text import PYTHON_ENDINGS, declared_encoding, decoded
from schemas.handoff import Finding

# Beyond this a YAML file takes seconds in pure Python.
_MAX_YAML_BYTES = 1024 * 1024
_TOO_DEEP = "it is nested too deep"


class _Answer(Enum):
    """What came of one file that is not a finding."""

    PARSES = "parsed"
    BROKEN_BEFORE = "broken_before"
    NO_PARSER = "no_parser"


def parses(case: Case) -> GateReport:
    """Compare what parses before and after, file by file."""
    looked_at = [change for change in case.changes if change.has_text and change.after != change.before]
    answers = [_still_parses(change) for change in looked_at]
    found = [answer for answer in answers if isinstance(answer, Finding)]
    counts = {"files": len(looked_at)} | {kind.value: answers.count(kind) for kind in _Answer}
    clean = f"{counts['parsed']} changed files parse as before"
    return judge("parses", found, clean=clean, counts=counts)


def _still_parses(change: Change) -> Finding | _Answer:
    check = _exact_parser(change)
    if check is not None and (change.before is None or check(change.before) is None):
        trouble = check(change.after or b"")
        return _Answer.PARSES if trouble is None else _broken(change, *trouble)
    return _by_error_nodes(change)


def _by_error_nodes(change: Change) -> Finding | _Answer:
    """For a file that no exact parser takes; error nodes of a file that had some before say nothing."""
    language = language_of(change.path)
    if language is None:
        return _Answer.NO_PARSER
    before = 0 if change.before is None else _errors_in(change.path, change.before, language.name)
    after = _errors_in(change.path, change.after or b"", language.name)
    if before is None or after is None:
        return _Answer.NO_PARSER
    if before:
        return _Answer.BROKEN_BEFORE
    if after:
        return _broken(change, 0, f"{after} places are no {language.name}")
    return _Answer.PARSES


def _errors_in(path: str, data: bytes, language: str) -> int | None:
    text = decoded(data, declared_encoding(path, data))
    return None if text is None else count_error_nodes(text, language)


# A parser gives None for what parses, else (line, why).
_Trouble = tuple[int, str]
_Parser = Callable[[bytes], _Trouble | None]


def _exact_parser(change: Change) -> _Parser | None:
    if change.path.endswith(PYTHON_ENDINGS):
        return _python
    parser = _BY_ENDING.get(PurePosixPath(change.path).suffix.lower())
    too_large = max(len(change.before or b""), len(change.after or b"")) > _MAX_YAML_BYTES
    return None if parser is _yaml and too_large else parser


def _python(data: bytes) -> _Trouble | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and the like were there before
            compile(data, "<changed file>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error.lineno or 0, error.msg
    except (ValueError, OverflowError) as error:  # null bytes, an integer with too many digits
        return 0, str(error)
    except (RecursionError, MemoryError):
        return 0, _TOO_DEEP
    return None


def _json(data: bytes) -> _Trouble | None:
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        return error.lineno, error.msg
    except (ValueError, RecursionError) as error:
        return 0, str(error)
    return None


def _toml(data: bytes) -> _Trouble | None:
    try:
        tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return 0, str(error)
    return None


def _yaml(data: bytes) -> _Trouble | None:
    try:
        # Parsing alone: tags of applications (`!Ref`) mean nothing here and are no fault.
        for _ in YAML(typ="safe", pure=True).parse(data):
            pass
    except (YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        return (mark.line + 1 if mark else 0), str(getattr(error, "problem", None) or error)
    return None


_BY_ENDING: dict[str, _Parser] = {".json": _json, ".toml": _toml, ".yaml": _yaml, ".yml": _yaml}


def _broken(change: Change, line: int, why: str) -> Finding:
    since = "is new and does not parse" if change.before is None else "parsed before and does not now"
    return finding("parses", f"It {since}: {why}.", path=change.path, line=line)

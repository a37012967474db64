"""What changed in a file, in a few names that a reader knows: functions, classes, imports.

Only for Python, only for files of ordinary size, and read by indentation alone: a help for the reader of a report, not
evidence. Parsing both versions of every file would take longer than the rule.
"""

import re
from collections.abc import Iterator

PYTHON_ENDINGS = (".py", ".pyi")
_MAX_BYTES = 256 * 1024
_MAX_NAMES = 12
_IMPORTS, _REST = "(imports)", "(rest)"
_DEFINITION = re.compile(r"(?:async[ \t]+)?(def|class)[ \t]+(\w+)")
_IMPORT = re.compile(r"(?:import|from)[ \t]")
_TRIPLE = re.compile(r'"""|\'\'\'')
_Part = tuple[str, ...]


def key_changes(path: str, before: bytes | None, after: bytes | None) -> tuple[str, ...]:
    """Names of what changed, in the order of the file; nothing where that cannot be said."""
    if not path.endswith(PYTHON_ENDINGS) or before is None or after is None:
        return ()
    if max(len(before), len(after)) > _MAX_BYTES:
        return ()
    old, new = _parts(before), _parts(after)
    names = [name for name in new if old.get(name) != new[name] and name not in (_IMPORTS, _REST)]
    names += [f"{name} (gone)" for name in old if name not in new]
    imports = _imports_changed(old[_IMPORTS], new[_IMPORTS])
    rest = ["module level"] if old[_REST] != new[_REST] else []
    found = (*imports, *names, *rest)
    more = len(found) - _MAX_NAMES
    return (*found[:_MAX_NAMES], f"and {more} more") if more > 0 else found


def _parts(data: bytes) -> dict[str, _Part]:
    """The lines of every function and class body by dotted name, of the imports, and of what is left."""
    parts: dict[str, list[str]] = {_IMPORTS: [], _REST: []}
    for owner, line in _owned(data.decode("utf-8", "replace").splitlines()):
        parts.setdefault(owner, []).append(line)
    return {name: tuple(text) for name, text in parts.items()}


def _owned(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Every line with the innermost definition that it belongs to; a decorator belongs to what it decorates."""
    inside: list[tuple[int, str, str]] = []  # indent, dotted name, how it is shown
    decorators: list[str] = []
    in_import = in_text = False
    for line in map(str.rstrip, lines):
        code = line.lstrip()
        was_in_text, in_text = in_text, in_text != (len(_TRIPLE.findall(code)) % 2 == 1)
        if code and not was_in_text and not in_import:
            indent = len(line) - len(code)
            while inside and inside[-1][0] >= indent:
                inside.pop()
            if code.startswith("@"):
                decorators.append(line)
                continue
            found = _DEFINITION.match(code)
            if found:
                name = f"{inside[-1][1]}.{found[2]}" if inside else found[2]
                inside.append((indent, name, name if found[1] == "class" else f"{name}()"))
            in_import = _IMPORT.match(code) is not None and not inside
        owner = _IMPORTS if in_import else inside[-1][2] if inside else _REST
        yield from ((owner, one) for one in decorators)
        decorators.clear()
        yield owner, line
        in_import = in_import and not code.endswith(")") and (code.endswith(("(", ",", "\\")))
    yield from ((_REST, one) for one in decorators)


def _imports_changed(old: _Part, new: _Part) -> list[str]:
    before, after = set(old), set(new)
    gone = [f"- {_text(line)}" for line in old if line not in after]
    came = [f"+ {_text(line)}" for line in new if line not in before]
    return [*gone, *came]


def _text(line: str) -> str:
    return line.strip()[:100]

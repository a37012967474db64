"""What changed in a file, in a few names that a reader knows: functions, classes, imports.

Only for Python, only for files of ordinary size: a help for the reader of a report, not evidence.
"""

import ast
import warnings
from collections.abc import Iterator

PYTHON_ENDINGS = (".py", ".pyi")
# Parsing both versions of a larger file costs more than the names are worth.
_MAX_BYTES = 256 * 1024
_MAX_NAMES = 12
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def key_changes(path: str, before: bytes | None, after: bytes | None) -> tuple[str, ...]:
    """Names of what changed, in the order of the file; nothing where that cannot be said."""
    if not path.endswith(PYTHON_ENDINGS) or before is None or after is None:
        return ()
    if max(len(before), len(after)) > _MAX_BYTES:
        return ()
    old, new = _parts(before), _parts(after)
    if old is None or new is None:
        return ()
    names = [name for name in new if old.get(name) != new[name] and name not in (_IMPORTS, _REST)]
    names += [f"{name} (gone)" for name in old if name not in new]
    imports = _imports_changed(old[_IMPORTS], new[_IMPORTS])
    rest = ["module level"] if old[_REST] != new[_REST] else []
    found = (*imports, *names, *rest)
    more = len(found) - _MAX_NAMES
    return (*found[:_MAX_NAMES], f"and {more} more") if more > 0 else found


_IMPORTS, _REST = "(imports)", "(rest)"
_Part = tuple[bytes, ...]


def _parts(data: bytes) -> dict[str, _Part] | None:
    """The lines of every function and class body by dotted name, of the imports, and of what is left."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = data.splitlines()
    owner: list[str] = [_REST] * (len(lines) + 1)
    for name, node in _definitions(tree, ""):
        start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        for number in range(start, (node.end_lineno or start) + 1):
            if number < len(owner):
                owner[number] = name
    for found in ast.walk(tree):
        if isinstance(found, ast.Import | ast.ImportFrom):
            for number in range(found.lineno, (found.end_lineno or found.lineno) + 1):
                if number < len(owner) and owner[number] == _REST:
                    owner[number] = _IMPORTS
    parts: dict[str, list[bytes]] = {_IMPORTS: [], _REST: []}
    for number, line in enumerate(lines, 1):
        parts.setdefault(owner[number], []).append(line.rstrip())
    return {name: tuple(text) for name, text in parts.items()}


def _definitions(node: ast.AST, prefix: str) -> Iterator[tuple[str, _Definition]]:
    """Outer before inner, so that a line belongs to its innermost definition."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition):
            name = f"{prefix}{child.name}"
            yield (name if isinstance(child, ast.ClassDef) else f"{name}()"), child
            yield from _definitions(child, f"{name}.")
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from _definitions(child, prefix)


def _imports_changed(old: _Part, new: _Part) -> list[str]:
    before, after = set(old), set(new)
    gone = [f"- {_text(line)}" for line in old if line not in after]
    came = [f"+ {_text(line)}" for line in new if line not in before]
    return [*gone, *came]


def _text(line: bytes) -> str:
    return line.strip().decode("utf-8", "replace")[:100]

"""Did the tests load the tree's own code? What the probe wrote down, compared with what the tree holds.

A project installed into the environment as a copy passes all its tests whatever the candidate says. Where the
tree has a module that was loaded from elsewhere (or was not found at all), the folder that holds it in the tree is
an *import root*: put on PYTHONPATH, it wins over an installed copy.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import WorkspaceError
from tester.discovery import looks_like_test
from tester.reports import read_report

_MAX_REPORT_BYTES = 4 * 1024 * 1024
# One report per process: pytest-xdist has as many as there are processors.
_MAX_REPORTS = 256
_NOT_FOUND = re.compile(r"No module named '([A-Za-z_][A-Za-z0-9_]*)")
# Where projects keep their packages, the likeliest first.
_USUAL_ROOTS = ("", "src", "lib", "python")


@dataclass(frozen=True, slots=True)
class Loaded:
    """`inside`: files of the tree that were loaded; `outside`: top-level modules loaded from elsewhere, with the file."""

    inside: frozenset[str]
    outside: Mapping[str, str]

    def product_files(self) -> frozenset[str]:
        """The loaded files that are not tests themselves."""
        return frozenset(path for path in self.inside if not _belongs_to_tests(path))


def read_loaded(folder: Path) -> Loaded | None:
    """All reports of one run together; None if there is none that can be read."""
    inside: set[str] = set()
    outside: dict[str, str] = {}
    found = False
    for path in sorted(folder.glob("loaded-*.json"))[:_MAX_REPORTS]:
        try:
            data = read_report(path, limit_bytes=_MAX_REPORT_BYTES)
            document = json.loads(data or b"")
            inside.update(str(one) for one in document["inside"])
            outside.update({str(name): str(file) for name, file in document["outside"].items()})
        except (WorkspaceError, ValueError, KeyError, TypeError, AttributeError):
            continue  # written by foreign code: what is not a report proves nothing
        found = True
    return Loaded(frozenset(inside), outside) if found else None


def shadowed(loaded: Loaded, paths: frozenset[str]) -> dict[str, str]:
    """Modules that the tree has, but that were loaded from the given file elsewhere."""
    return {name: file for name, file in sorted(loaded.outside.items()) if root_of(name, paths) is not None}


def missing_modules(texts: Iterable[str]) -> frozenset[str]:
    """The top-level modules that Python said it could not find."""
    return frozenset(name for text in texts for name in _NOT_FOUND.findall(text))


def import_roots(modules: Iterable[str], paths: frozenset[str]) -> tuple[str, ...]:
    """The folders of the tree that hold these modules."""
    roots = {root for module in modules if (root := root_of(module, paths)) is not None}
    return tuple(sorted(roots))


def root_of(module: str, paths: frozenset[str]) -> str | None:
    """The folder of the tree from which this top-level module would be imported, or None."""
    for root in _USUAL_ROOTS:
        prefix = f"{root}/" if root else ""
        if f"{prefix}{module}/__init__.py" in paths or f"{prefix}{module}.py" in paths:
            return root
    return None


def _belongs_to_tests(path: str) -> bool:
    *folders, name = path.split("/")
    return name == "conftest.py" or looks_like_test(path) or bool({"tests", "test"} & set(folders))

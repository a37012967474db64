"""The files of a view, put into a folder so that ruff judges each as it would in the whole repository.

Some rules look at what lies around a file (is this name a package of ours?), so what is out of reach stands there as
empty files: the answer must not depend on how the work was cut.
"""

import tomllib
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath

from workspace.view import TreeView

_PYTHON = (".py", ".pyi")
_SETTINGS = ("ruff.toml", ".ruff.toml")


def write_tree(folder: Path, files: Mapping[str, bytes], view: TreeView, *, with_settings: bool) -> None:
    """Write the files, stand-ins for the rest, and the repository's ruff settings if they count."""
    rest = [path for path in view.all_paths() if path not in files and _is_file(view, path)]
    made: set[str] = set()
    for path, data in files.items():
        _write(folder, path, data, made)
    for path in rest:
        if path.endswith(_PYTHON) and (with_settings or _tells_about_packages(path)):
            _write(folder, path, b"", made)
    if with_settings:
        settings = [path for path in rest if path.endswith(".toml")]
        for path, data in view.read_many(settings):
            _write(folder, path, data, made)
        _fence(folder, view)


def packages_digest(view: TreeView) -> str:
    """SHA-256 of what a file's neighbours tell ruff when there are no settings."""
    names = [path for path in view.all_paths() if path.endswith(_PYTHON) and _tells_about_packages(path)]
    return sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()


def is_safe(path: str) -> bool:
    """True if the path can be a file of a folder, under a name that ruff can print."""
    parts = PurePosixPath(path).parts
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return (
        bool(parts)
        and path[0] != "/"
        and not any(part in ("..", ".git") for part in parts)
        and "\0" not in path
    )


def _tells_about_packages(path: str) -> bool:
    """True for what ruff looks for without settings: packages, and modules at the top or in `src`."""
    parts = PurePosixPath(path).parts
    return len(parts) == 1 or parts[-1].startswith("__init__.") or (len(parts) == 2 and parts[0] == "src")


def _is_file(view: TreeView, path: str) -> bool:
    entry = view.entry(path)
    return entry is not None and entry.is_file and is_safe(path)


def _write(folder: Path, path: str, data: bytes, made: set[str]) -> None:
    target = folder / path
    parent = str(PurePosixPath(path).parent)
    if parent not in made:
        target.parent.mkdir(parents=True, exist_ok=True)
        made.add(parent)
    target.write_bytes(data)


def _fence(folder: Path, view: TreeView) -> None:
    """Settings at the top, if the repository has none there: ruff would look for some in the folders above."""
    if any(view.entry(name) for name in _SETTINGS) or _has_ruff_table(folder / "pyproject.toml"):
        return
    (folder / "ruff.toml").write_bytes(b"")


def _has_ruff_table(file: Path) -> bool:
    try:
        tool: Iterable[str] = tomllib.loads(file.read_text("utf-8")).get("tool", {})
    except (OSError, ValueError):
        return False
    return "ruff" in tool

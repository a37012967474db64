"""What a sandbox must let a job read besides the system: its virtual environment, and the Python behind it.

An interpreter is often reached over several links (a venv, a version manager, a link to the newest patch release);
every link on the way must exist inside too. Nothing that would show the user's home as a whole is ever named.
"""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

# A link that leads to itself.
_MOST_LINKS = 40


@dataclass(frozen=True, slots=True)
class Needs:
    """What to show: the environment and its Python, folders elsewhere that it imports from, links on the way."""

    folders: tuple[Path, ...]
    imported: tuple[Path, ...]
    links: tuple[tuple[Path, str], ...]


def needs_of(environment: Path) -> Needs:
    """What a virtual environment needs to work, itself included."""
    folders = [environment]
    links: list[tuple[Path, str]] = []
    for start in (environment, *_interpreters(environment)):
        passed, real = trace(start)
        links += passed
        folders.append(_prefix_of(real) if real.is_file() else real)
    return Needs(_sane(folders), _sane(_editable_folders(environment)), tuple(dict.fromkeys(links)))


def trace(path: Path) -> tuple[list[tuple[Path, str]], Path]:
    """The links met on the way to a path, as (link, target), and where it really is."""
    links: list[tuple[Path, str]] = []
    parts = list(path.absolute().parts[1:])
    at = Path("/")
    while parts and len(links) < _MOST_LINKS:
        part = parts.pop(0)
        if part == "..":
            at = at.parent
            continue
        following = at / part
        if following.is_symlink():
            target = os.readlink(following)  # noqa: PTH115 - a Path would tidy the text
            links.append((following, target))
            parts = [*(p for p in Path(target).parts if p != "/"), *parts]
            at = Path("/") if target.startswith("/") else at
            continue
        at = following
    return links, at


def _interpreters(environment: Path) -> Iterator[Path]:
    for name in ("python", "python3"):
        if os.path.lexists(environment / "bin" / name):
            yield environment / "bin" / name
    with suppress(OSError):
        for line in (environment / "pyvenv.cfg").read_text("utf-8", "replace").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home" and value.strip().startswith("/"):
                yield Path(value.strip()) / "python3"


def _prefix_of(interpreter: Path) -> Path:
    """The installation that an interpreter belongs to; the file alone if it does not look like one."""
    prefix = interpreter.parent.parent
    return prefix if any(prefix.glob("lib/python3*")) else interpreter


def _editable_folders(environment: Path) -> Iterator[Path]:
    """Folders elsewhere that the environment imports from: other checkouts of a monorepo, for instance."""
    for site in environment.glob("lib/python3*/site-packages"):
        for file in site.glob("*.dist-info/direct_url.json"):
            with suppress(OSError, ValueError, AttributeError):
                known = json.loads(file.read_text("utf-8"))
                url = urlsplit(str(known.get("url", "")))
                if known.get("dir_info", {}).get("editable") and url.scheme == "file":
                    yield Path(unquote(url.path))
        for file in site.glob("*.pth"):
            with suppress(OSError):
                lines = file.read_text("utf-8", "replace").splitlines()
                yield from (Path(line.strip()) for line in lines if line.startswith("/"))


def _sane(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Each once, if it is there, and never the root, the home or what holds it."""
    too_much = {Path("/"), Path.home(), *Path.home().parents}
    return tuple(folder for folder in dict.fromkeys(folders) if folder.exists() and folder not in too_much)

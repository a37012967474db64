"""Where an attribute is defined: pyrefly and jedi asked about places of a copy of the files.

The copy holds Python files only, without `.git`, settings or an environment, so that the answers depend on nothing
else. Line ends that the two count differently are made spaces in it; positions stay.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from engines.rename.documents import Documents
from engines.rename.jedi_answers import JediAnswers
from engines.rename.module_names import ModuleNames
from engines.ruff_tree import is_safe
from engines.source import UnreadableError, read_source
from schemas.errors import WorkspaceError
from workspace.language_server import LanguageServer
from workspace.tools import installed_tool

PYREFLY_VERSION = version("pyrefly")
# Answers are asked for again until two rounds agree: a server may answer before it has read everything.
_MOST_ROUNDS = 6
# Questions under way at once; more fill the pipes of both sides.
_TOGETHER = 64
_CONSTRUCTOR = re.compile(r"__(?:init|new|call)__\b")
_SETTINGS = """\
search-path = {roots}
site-package-path = []
skip-interpreter-query = true
python-version = "3.13"
python-platform = "linux"
project-includes = ["**/*.py", "**/*.pyi"]
project-excludes = []
"""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a file; `path` is absolute for what lies outside of the repository."""

    path: str
    position: int
    is_outside: bool = False


@dataclass(slots=True)
class Lines:
    """A text by lines, for positions as language servers count them (lines from 0, UTF-16 units)."""

    text: str
    starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.starts = [0, *(index + 1 for index, letter in enumerate(self.text) if letter == "\n")]

    def at(self, position: int) -> tuple[int, int]:
        """(line, UTF-16 column) of a position."""
        line = bisect_right(self.starts, position) - 1
        before = self.text[self.starts[line] : position]
        return line, len(before.encode("utf-16-le", "surrogatepass")) // 2

    def position(self, line: int, column: int) -> int:
        """The position of (line, UTF-16 column)."""
        start = self.starts[min(line, len(self.starts) - 1)]
        rest = self.text[start : start + column].encode("utf-16-le", "surrogatepass")[: 2 * column]
        return start + len(rest.decode("utf-16-le", "ignore"))


class Definitions:
    """Answers about places; a context manager, since a server is behind it."""

    def __init__(self, documents: Documents, names: ModuleNames, folder: Path) -> None:
        self._documents = documents
        self._folder = folder
        self._lines: dict[str, Lines] = {}
        self._opened: set[str] = set()
        self._stack = ExitStack()
        for path in documents.python:
            if is_safe(path):
                _write(folder / path, documents, path)
        roots = [root for root in names.roots if root == "." or is_safe(root)]
        (folder / "pyrefly.toml").write_text(_SETTINGS.format(roots=_toml_list(roots)), "utf-8")
        self._server = self._stack.enter_context(
            LanguageServer([installed_tool("pyrefly"), "lsp"], cwd=folder)
        )
        size_bytes = sum(len(documents.data(path)) for path in documents.python)
        self.jedi = JediAnswers(folder, roots, size_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self.jedi.forget()

    def typed(self, spots: Sequence[Spot]) -> list[tuple[Spot, ...]]:
        """Where pyrefly says that each is defined; nothing where it cannot tell."""
        questions = [self._question(spot) for spot in spots]
        before = self._round(questions)
        for _ in range(_MOST_ROUNDS):
            again = self._round(questions)
            if again == before:
                return again
            before = again
        raise WorkspaceError(
            f"pyrefly {PYREFLY_VERSION} gives another answer each time it is asked.",
            suggestion="Try again; where it stays so, name the files in the rule's scope more closely.",
        )

    def inferred(self, spot: Spot) -> tuple[Spot, ...]:
        """Where jedi says that it is defined; nothing where it cannot tell."""
        lines = self._lines_of(spot)
        line = bisect_right(lines.starts, spot.position) - 1
        column = spot.position - lines.starts[line]
        found = self.jedi.goto(spot.path, lines.text, line + 1, column)
        return tuple(
            Spot(path, self._lines_of(Spot(path, 0)).starts[row - 1] + at)
            for path, row, at in found
            if self._documents.get(path) is not None
        )

    def line(self, spot: Spot) -> int:
        """The line of a spot, counted from 1."""
        return bisect_right(self._lines_of(spot).starts, spot.position)

    def is_constructor(self, spot: Spot) -> bool:
        """True for the name of a method that makes instances."""
        return _CONSTRUCTOR.match(self.text(spot), spot.position) is not None

    def text(self, spot: Spot) -> str:
        """The text of a spot's file."""
        return self._lines_of(spot).text

    def _round(self, questions: Sequence[Mapping[str, Any]]) -> list[tuple[Spot, ...]]:
        answers: list[Any] = []
        for start in range(0, len(questions), _TOGETHER):
            answers += self._server.ask_many("textDocument/definition", questions[start : start + _TOGETHER])
        return [self._spots(answer) for answer in answers]

    def _question(self, spot: Spot) -> dict[str, Any]:
        lines = self._lines_of(spot)
        place = Path(spot.path) if spot.is_outside else self._folder / spot.path
        if spot.path not in self._opened:
            self._opened.add(spot.path)
            document = {"uri": place.as_uri(), "languageId": "python", "version": 1, "text": lines.text}
            self._server.tell("textDocument/didOpen", {"textDocument": document})
        line, column = lines.at(spot.position)
        return {"textDocument": {"uri": place.as_uri()}, "position": {"line": line, "character": column}}

    def _spots(self, answer: Any) -> tuple[Spot, ...]:
        found = answer if isinstance(answer, list) else [answer] if answer else []
        spots = {self._spot(one) for one in found}
        return tuple(
            sorted((one for one in spots if one is not None), key=lambda one: (one.path, one.position))
        )

    def _spot(self, location: Mapping[str, Any]) -> Spot | None:
        uri = location.get("uri") or location.get("targetUri") or ""
        span = location.get("range") or location.get("targetSelectionRange") or {}
        if not uri.startswith("file:") or not span:
            return None
        place = Path(unquote(urlsplit(uri).path))
        is_outside = not place.is_relative_to(self._folder)
        path = str(place) if is_outside else place.relative_to(self._folder).as_posix()
        if not is_outside and self._documents.get(path) is None:
            return None
        start = span["start"]
        bare = Spot(path, 0, is_outside)
        return Spot(path, self._lines_of(bare).position(start["line"], start["character"]), is_outside)

    def _lines_of(self, spot: Spot) -> Lines:
        if spot.path not in self._lines:
            if spot.is_outside:
                text = Path(spot.path).read_text("utf-8")
            else:
                document = self._documents.get(spot.path)
                assert document is not None, spot.path
                text = _plain(document.text)
            self._lines[spot.path] = Lines(text)
        return self._lines[spot.path]


def _write(place: Path, documents: Documents, path: str) -> None:
    """The file as UTF-8 without a mark; one that is no text is there as it is."""
    data = documents.data(path)
    with suppress(UnreadableError, UnicodeEncodeError):
        data = _plain(read_source(data, is_python=True).text).encode()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)


def _plain(text: str) -> str:
    """The text with the same positions, and line ends that nobody counts differently."""
    for odd in ("\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"):
        if odd in text:
            text = text.replace(odd, " ")
    return text


def _toml_list(words: Iterable[str]) -> str:
    quoted = (word.replace("\\", "\\\\").replace('"', '\\"') for word in words)
    return "[" + ", ".join(f'"{word}"' for word in quoted) + "]"

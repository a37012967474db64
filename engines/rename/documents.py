"""The Python files of a view as parsed text, read when they are asked for.

Positions are indexes into the text (code points). Files that cannot be read or do not parse have no document, and a
reason instead.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ast_grep_py import SgNode, SgRoot

from engines.languages import language, language_of
from engines.source import Source, UnreadableError, is_binary, read_source
from engines.syntax import Span, fault_spans, span_of
from workspace.view import TreeView

PYTHON = language("python")


@dataclass(slots=True)
class Document:
    """A file that parses. `in_reach` is False where the rule may look but not change."""

    path: str
    source: Source
    root: SgNode
    in_reach: bool = True
    _names: dict[str, list[SgNode]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The file's text, without a byte order mark."""
        return self.source.text

    def identifiers(self, name: str) -> list[SgNode]:
        """The identifier nodes that are exactly this name, in order of the text."""
        if name not in self._names:
            found = self.root.find_all(kind="identifier", regex=f"^{re.escape(name)}$")
            self._names[name] = sorted(found, key=span_of)
        return self._names[name]

    def identifier_at(self, position: int) -> SgNode | None:
        """The identifier that starts at a position."""
        found = re.compile(r"\w+").match(self.text, position)
        if found is None:
            return None
        return next((one for one in self.identifiers(found[0]) if span_of(one)[0] == position), None)

    def line(self, position: int) -> int:
        """The line of a position, counted from 1."""
        return self.text.count("\n", 0, position) + 1

    def line_text(self, position: int) -> str:
        """The text of the position's line."""
        start = self.text.rfind("\n", 0, position) + 1
        end = self.text.find("\n", position)
        return self.text[start : end if end >= 0 else None]


class Documents:
    """The documents of a view; each is parsed once."""

    def __init__(self, view: TreeView) -> None:
        self._view = view
        self._reach = frozenset(view.paths())
        self._parsed: dict[str, Document | None] = {}
        self._bytes: dict[str, bytes] = {}
        self.faults: dict[str, str] = {}
        self.python: tuple[str, ...] = tuple(path for path in view.all_paths() if self._is_python_file(path))

    def get(self, path: str) -> Document | None:
        """The document of a Python file, or None with a reason in `faults`."""
        if path not in self._parsed:
            self._parsed[path] = self._read(path)
        return self._parsed[path]

    def having(self, word: str) -> Iterator[Document]:
        """The documents of all Python files that have the bytes of a word, in byte order of paths."""
        for path in self.paths_having(word):
            document = self.get(path)
            if document is not None:
                yield document

    def paths_having(self, word: str) -> list[str]:
        """The Python files whose bytes have a word (files in other encodings than UTF-8 for a non-ASCII word, too)."""
        wanted = word.encode()
        self._load(self.python)
        return [path for path in self.python if wanted in self._bytes[path] or not word.isascii()]

    def data(self, path: str) -> bytes:
        """The bytes of a Python file."""
        self._load((path,))
        return self._bytes[path]

    def _load(self, paths: Iterable[str]) -> None:
        missing = [path for path in paths if path not in self._bytes]
        self._bytes.update(self._view.read_many(missing))

    def _is_python_file(self, path: str) -> bool:
        spoken, entry = language_of(path), self._view.entry(path)
        return spoken is not None and spoken.name == "python" and entry is not None and entry.is_file

    def _read(self, path: str) -> Document | None:
        found = read_document(path, self.data(path), in_reach=path in self._reach)
        if isinstance(found, str):
            self.faults[path] = found
            return None
        return found


def read_document(path: str, data: bytes, *, in_reach: bool = True) -> Document | str:
    """The document of a file's bytes, or why there is none."""
    if is_binary(data):
        return "is a binary file"
    try:
        source = read_source(data, is_python=True)
    except UnreadableError as error:
        return str(error)
    root = SgRoot(source.text, "python").root()
    faults = fault_spans(root, PYTHON)
    if faults:
        line = source.text.count("\n", 0, faults[0][0]) + 1
        return f"does not parse (line {line})"
    return Document(path, source, root, in_reach)


def word_spans(text: str, word: str) -> list[Span]:
    """Where a word stands as a whole word."""
    return [found.span() for found in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text)]

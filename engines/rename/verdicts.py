"""What was decided for each place of the name: it is the symbol, it is another one, or nobody can tell."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from engines.rename.scopes import Place, Variable
from engines.syntax import Span


class By(StrEnum):
    """Who decided."""

    SCOPES = "scopes"
    PYREFLY = "pyrefly"
    JEDI = "jedi"
    WORDS = "words"


@dataclass(slots=True)
class FileVerdicts:
    """One file: spans that are the symbol and by whom, spans that are another, and open ones with the reason."""

    path: str
    symbol: dict[Span, By] = field(default_factory=dict)
    others: set[Span] = field(default_factory=set)
    open: dict[Span, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    """The variables that are the symbol here: where the new name must be free."""

    def take(self, places: Iterable[Place], by: By) -> None:
        """These places are the symbol."""
        self.symbol.update((one.span, by) for one in places)


@dataclass(slots=True)
class Verdicts:
    """All files."""

    files: dict[str, FileVerdicts] = field(default_factory=dict)

    def of(self, path: str) -> FileVerdicts:
        """The verdicts of a file, made when first asked for."""
        return self.files.setdefault(path, FileVerdicts(path))

    def spots(self) -> Iterator[tuple[str, int]]:
        """(path, position) of every place that is the symbol."""
        for path, one in self.files.items():
            yield from ((path, start) for start, _ in one.symbol)

    def counts(self) -> Counter[str]:
        """How many places were decided by whom."""
        return Counter(str(by) for one in self.files.values() for by in one.symbol.values())

"""jedi, which guesses the types of parameters from the calls; asked only where types are not written.

It gets an environment with nothing in it, no folder to remember things in, and a limit of questions.
"""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from engines.languages import ending_of

JEDI_VERSION = version("jedi")
# A question takes 5 to 50 ms in a small repository and up to five seconds in one of 18 MB, where hardly one in twenty is
# answered.
# So the number of questions goes by the size; places beyond it stay undecided, and are told so. A limit of time would
# give another result on another machine.
MOST_QUESTIONS = 400
_QUESTIONS_TIMES_BYTES = 60_000_000
# Where fewer than these may be asked (from 6 MB of Python on), the first alone would take longer than all the rest.
_FEWEST_QUESTIONS = 10


class JediAnswers:
    """What jedi says about the copy of a tree."""

    def __init__(self, folder: Path, roots: Sequence[str], size_bytes: int) -> None:
        import jedi  # here, because only a rename that asks about types needs it: 20 MB and 0.2 s
        from jedi.api.environment import InterpreterEnvironment

        self._jedi = jedi
        jedi.settings.cache_directory = str(folder / ".nothing" / "jedi")
        self._folder = folder
        search = [str(folder if root == "." else folder / root) for root in roots]
        self._project = jedi.Project(folder, sys_path=search, smart_sys_path=False)
        self._environment = InterpreterEnvironment()
        affordable = min(MOST_QUESTIONS, _QUESTIONS_TIMES_BYTES // max(size_bytes, 1))
        self.most = affordable if affordable >= _FEWEST_QUESTIONS else 0
        self.questions = 0

    def forget(self) -> None:
        """Drop what was parsed: the files of the next copy are others."""
        from parso.cache import parser_cache

        parser_cache.clear()

    @property
    def is_spent(self) -> bool:
        """True once it may not be asked any more."""
        return self.questions >= self.most

    def goto(self, path: str, text: str, line: int, column: int) -> list[tuple[str, int, int]]:
        """(path, line from 1, column) of each definition in the tree; nothing where it cannot tell."""
        self.questions += 1
        script = self._jedi.Script(
            text, path=self._folder / path, project=self._project, environment=self._environment
        )
        try:
            names = script.goto(line, column, follow_imports=True)
        except Exception:  # jedi breaks in many ways on code that it does not understand
            return []
        found = set()
        for name in names:
            place = name.module_path
            inside = (
                place is not None
                and place.is_relative_to(self._folder)
                and ending_of(str(place)) in ("py", "pyi")
            )
            if inside and place is not None and name.line is not None and name.column is not None:
                found.add((place.relative_to(self._folder).as_posix(), name.line, name.column))
        return sorted(found)

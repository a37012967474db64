"""Import handling where we know only how an import looks: nothing is edited, a likely leftover is told."""

import re
from collections.abc import Sequence

from ast_grep_py import SgNode

from engines.imports import Kept
from engines.languages import Language
from engines.syntax import Span, inside_import, parse

_NAME = re.compile(r"[^\W\d]\w*")


class OtherImports:
    """The imports of one file in a language without import handling of its own."""

    def __init__(self, spoken: Language) -> None:
        self._language = spoken
        self._used: dict[str, None] = {}

    def admit(self, root: SgNode, match: SgNode) -> str | None:
        self._used |= dict.fromkeys(_NAME.findall(match.text()))
        return None

    def settle(self, text: str, spans: Sequence[Span]) -> Kept:
        root = parse(text, self._language)
        leftovers = [name for name in self._used if _is_only_imported(root, name)]
        return Kept(text, tuple(f"The import of `{name}` may not be needed any more." for name in leftovers))


def _is_only_imported(root: SgNode, name: str) -> bool:
    nodes = [node for node in root.find_all(regex=f"^{re.escape(name)}$") if node.is_leaf()]
    return bool(nodes) and all(inside_import(node) for node in nodes)

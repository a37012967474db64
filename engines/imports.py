"""What a language's import handling is: asked before each match, and once after all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ast_grep_py import SgNode

from engines.syntax import Span


@dataclass(frozen=True, slots=True)
class Kept:
    """The text with its imports put right, and sentences about what could not be decided."""

    text: str
    remarks: tuple[str, ...] = ()


class ImportKeeper(Protocol):
    """The imports of one file during one rewrite."""

    def admit(self, root: SgNode, match: SgNode) -> str | None:
        """A reason to leave this match, or None; notes which names the match uses."""

    def settle(self, text: str, spans: Sequence[Span]) -> Kept:
        """Add what the rewritten spans need, drop what nobody uses any more because of them."""

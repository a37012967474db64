"""The words of a rule's commit: what it did in at most 72 columns, and the author's description where it is longer.

They follow from the rule alone, so that the same refactor gives the same commit ids.
"""

import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from supervisor.saga.state import RuleRequest

# git's own custom: `git log` indents by four, and a terminal has 80 columns.
COLUMNS = 72
# By contract: words around one or two of its keys. The second of a pair is what follows where its key is empty.
_SENTENCES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "rewrite.pattern": (("rewrite", "match", "to", "replace"), ("remove", "match")),
    "text.replace": (("replace text", "find", "with", "replace"), ("remove text", "find")),
    "lint.fix": (("fix", "rules"), ("fix", "rules")),
    "rename.symbol": (("rename", "symbol", "to", "to"), ("rename", "symbol")),
}


def commit_words(rule: RuleRequest) -> tuple[str, str]:
    """Subject and body (may be empty) of a rule's commit.

    A description whose first line fits is the subject; a longer one is the body, under words made of the rule.
    """
    first, _, rest = rule.description.strip().partition("\n")
    if first and width(_plain(first)) <= COLUMNS:
        return _plain(first), _wrapped(rest)
    return _subject(rule), _wrapped(rule.description)


def width(text: str) -> int:
    """How many columns of a terminal a line takes."""
    return sum(_columns(one) for one in text)


def _subject(rule: RuleRequest) -> str:
    contract = rule.contract.ref.partition("@")[0]
    whole, without = _SENTENCES.get(contract, ((), ()))
    words = whole if whole and _text(rule.input.get(whole[-1])) else without
    values = [_text(rule.input.get(key)) for key in words[1::2]]
    if not values or not all(values):
        return _cut(_plain(f"{rule.rule}: {rule.contract.title}"), COLUMNS)
    return _fitted(words[0::2], values)


def _fitted(words: Sequence[str], values: Sequence[str]) -> str:
    """The sentence; a value that is too long gives way, the longest first."""
    room = COLUMNS - sum(width(word) + 1 for word in words) - (len(values) - 1)
    shares = [width(value) for value in values]
    while sum(shares) > room:
        shares[shares.index(max(shares))] -= 1
    cut = [_cut(value, share) for value, share in zip(values, shares, strict=True)]
    return " ".join(f"{word} {value}" for word, value in zip(words, cut, strict=True))


def _cut(text: str, columns: int) -> str:
    if width(text) <= columns:
        return text
    kept, taken = "", 1
    for one in text:
        taken += _columns(one)
        if taken > columns:
            break
        kept += one
    return f"{kept.rstrip()}…"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return _plain(value)
    return ", ".join(_plain(str(one)) for one in value) if isinstance(value, list | tuple) else ""


def _plain(text: str) -> str:
    """On one line, without what a terminal would obey or git refuse."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def _columns(one: str) -> int:
    if unicodedata.combining(one):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1


def _wrapped(text: str) -> str:
    paragraphs = [_plain(one) for one in text.strip().split("\n\n")]
    wrap = textwrap.TextWrapper(COLUMNS, break_long_words=False, break_on_hyphens=False)
    return "\n\n".join(wrap.fill(one) for one in paragraphs if one)

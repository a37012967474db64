"""The proof of a rename: the old name put back for the new one gives the old text, byte for byte.

Where the new name was absent before, that is one replacement of whole words. Where it was there, the words that are
new are put back one by one, and there may be no others.
"""

import re
from collections.abc import Iterable

from engines.rename.documents import word_spans
from engines.syntax import Span


def is_proved(before: str, after: str, old: str, new: str) -> bool:
    """True if `after` is `before` with some whole words `old` become `new`, and nothing else."""
    if not word_spans(before, new):
        return with_spans(after, word_spans(after, new), old) == before
    word = re.compile(rf"(?<!\w)(?:{re.escape(old)}|{re.escape(new)})(?!\w)")
    were, are = list(word.finditer(before)), list(word.finditer(after))
    pairs = list(zip((one[0] for one in were), (one[0] for one in are), strict=False))
    is_one_way = all(was == now or (was, now) == (old, new) for was, now in pairs)
    same_rest = word.split(before) == word.split(after)
    return len(were) == len(are) and is_one_way and same_rest


def with_spans(text: str, spans: Iterable[Span], word: str) -> str:
    """The text with a word at each of the spans."""
    parts: list[str] = []
    last = 0
    for start, end in sorted(spans):
        parts += [text[last:start], word]
        last = end
    return "".join([*parts, text[last:]])

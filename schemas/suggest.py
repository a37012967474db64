"""The nearest known name to what somebody typed."""

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The closest of `known` to `word`, or None if nothing is close."""
    from difflib import get_close_matches  # imported here: only a refusal needs it

    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[close[0]] if close else None

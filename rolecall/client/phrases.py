"""Numbers, times and foreign text as a person reads them on a terminal.

Text from repositories, tests and other machines goes through `printable`: it must not move the reader's cursor.
"""

import re
from datetime import UTC, datetime, timedelta

from schemas.errors import ContractError

# The end of a UUIDv7 is random: eight characters of it tell tasks apart, and the branch's name ends in them too.
SHORT_ID = 8
_SPAN = re.compile(r"(\d+)\s*(s|sec|m|min|h|hour|d|day|w|week)s?(?:\s+ago)?")
_SECONDS = {
    "s": 1,
    "sec": 1,
    "m": 60,
    "min": 60,
    "h": 3600,
    "hour": 3600,
    "d": 86400,
    "day": 86400,
    "w": 604800,
}
_SECONDS["week"] = _SECONDS["w"]


def short(task: str) -> str:
    """The part of a task's id that people copy; every command takes it."""
    return task[-SHORT_ID:]


def amount(count: int, noun: str, plural: str = "") -> str:
    """`1 file`, `2,345 files`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 9.95:
        return f"{max(seconds, 0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def span(start_us: int, end_us: int) -> str:
    """The time between two moments."""
    return duration((end_us - start_us) / 1e6)


def moment(at_us: int, *, now_us: int) -> str:
    """A moment in local time: the hour today, else the day too."""
    at, now = _local(at_us), _local(now_us)
    return at.strftime("%H:%M:%S" if at.date() == now.date() else "%Y-%m-%d %H:%M")


def since(text: str, *, now_us: int) -> int:
    """The moment that `yesterday`, `today`, `90min`, `3 days ago` or a date means. Raises ContractError."""
    word = text.strip().lower()
    now = _local(now_us)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if word in ("today", "yesterday"):
        return _us(midnight - timedelta(days=word == "yesterday"))
    if found := _SPAN.fullmatch(word):
        return now_us - int(found[1]) * _SECONDS[found[2]] * 1_000_000
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ContractError(
            f"{text!r} is no time.",
            suggestion="Say `yesterday`, `3h`, `2 days ago`, or a date like 2026-05-31.",
        ) from None
    return _us(given if given.tzinfo else given.astimezone())


def printable(text: str) -> str:
    """The text without terminal commands; line breaks stay, what cannot be shown becomes `?`."""
    return "".join(one if one.isprintable() or one == "\n" else " " if one == "\t" else "?" for one in text)


def one_line(text: str, limit: int = 300) -> str:
    """The text on one line, cut where it goes on too long."""
    flat = " ".join(printable(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def listed(words: tuple[str, ...] | list[str], limit: int = 5) -> str:
    """`a, b, c and 4 more`."""
    shown = [printable(word) for word in words[:limit]]
    more = len(words) - limit
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _local(at_us: int) -> datetime:
    return datetime.fromtimestamp(at_us / 1e6, UTC).astimezone()


def _us(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000)

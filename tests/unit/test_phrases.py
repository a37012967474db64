"""Numbers, times and foreign text as a person reads them."""

from datetime import UTC, datetime, timedelta

import pytest

from rolecall.client import phrases
from schemas.errors import ContractError

NOW = int(datetime(2026, 5, 20, 12, 0, tzinfo=UTC).timestamp() * 1e6)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.4, "59 s"), (60, "1 min"), (185, "3 min 05 s"), (7805, "2 h 10 min")],
)  # fmt: skip
def test_a_duration_is_told_as_exactly_as_anyone_cares(seconds: float, text: str) -> None:
    assert phrases.duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "back"),
    [("90s", 90), ("90 min", 5400), ("3h", 10800), ("2 days ago", 172800), ("1w", 604800)],
)
def test_a_span_means_so_long_ago(text: str, back: int) -> None:
    assert phrases.since(text, now_us=NOW) == NOW - back * 1_000_000


def test_yesterday_begins_at_local_midnight() -> None:
    local = datetime.fromtimestamp(NOW / 1e6, UTC).astimezone()
    midnight = local.replace(hour=0, minute=0) - timedelta(days=1)

    assert phrases.since("yesterday", now_us=NOW) == int(midnight.timestamp() * 1e6)


def test_a_date_is_taken_and_nonsense_is_refused_with_what_would_do() -> None:
    assert phrases.since("2026-05-01T00:00:00+00:00", now_us=NOW) < NOW
    with pytest.raises(ContractError, match="`yesterday`"):
        phrases.since("the other day", now_us=NOW)


def test_text_of_others_cannot_move_the_cursor() -> None:
    assert phrases.printable("a\x1b[2Jb\rc\u202ed\te") == "a?[2Jb?c?d e"
    assert phrases.one_line("two\nlines \x07 " + "x" * 400, 20) == "two lines ? xxxxxxx…"


def test_amounts_have_the_right_number() -> None:
    assert [phrases.amount(n, "file") for n in (0, 1, 2345)] == ["0 files", "1 file", "2,345 files"]
    assert phrases.listed(["a", "b", "c"], 2) == "a, b and 1 more"

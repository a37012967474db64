"""What the commit of a rule is called."""

from typing import Any

import pytest

from supervisor.saga.commit_words import COLUMNS, commit_words, width
from supervisor.saga.specs import commit_message
from supervisor.saga.state import RuleRequest, RuleState, TaskState
from tests.unit.saga_world import facts, request


def words(contract: str, input: dict[str, Any], description: str = "") -> tuple[str, str]:
    return commit_words(
        RuleRequest(rule="one", contract=facts(contract), input=input, description=description)
    )


@pytest.mark.parametrize(
    ("contract", "input", "subject"),
    [
        (
            "rewrite.pattern",
            {"match": "datetime.utcnow()", "replace": "datetime.now(timezone.utc)"},
            "rewrite datetime.utcnow() to datetime.now(timezone.utc)",
        ),
        ("rewrite.pattern", {"match": "print($A)\n", "replace": ""}, "remove print($A)"),
        ("lint.fix", {"rules": ["UP006", "UP007"]}, "fix UP006, UP007"),
        (
            "text.replace",
            {"find": "US/Pacific", "replace": "America/Los_Angeles"},
            "replace text US/Pacific with America/Los_Angeles",
        ),
        ("text.replace", {"find": "  old\n line", "replace": ""}, "remove text old line"),
        (
            "rename.symbol",
            {"symbol": "shop.Order.items", "to": "lines"},
            "rename shop.Order.items to lines",
        ),
        ("licence.header", {"holder": "us"}, "one: licence.header"),
    ],
)
def test_a_rule_without_a_description_is_told_from_what_it_does(
    contract: str, input: dict[str, Any], subject: str
) -> None:
    assert words(contract, input) == (subject, "")


@pytest.mark.parametrize("description", ["", "long " * 40])
@pytest.mark.parametrize("letter", ["x", "漢", "e\u0301", "\x1b[31m", "\udce9"])
def test_a_subject_takes_at_most_72_columns_and_one_printable_line(letter: str, description: str) -> None:
    for long in (letter * 20, letter * 200):
        for contract in ("rewrite.pattern", "text.replace", "lint.fix", "rename.symbol", "own.kind"):
            keys = {"match": long, "replace": long, "find": long, "symbol": long, "to": long, "rules": [long]}

            subject, _ = words(contract, keys, description)

            assert subject
            assert width(subject) <= COLUMNS
            assert subject.isprintable()


def test_of_two_long_values_both_are_seen() -> None:
    subject, _ = words("text.replace", {"find": "a" * 90, "replace": "b" * 90})

    assert subject == f"replace text {'a' * 25}… with {'b' * 26}…"


def test_a_short_description_is_the_subject() -> None:
    assert words("lint.fix", {"rules": ["UP006"]}, "Modern types.") == ("Modern types.", "")
    assert words("lint.fix", {"rules": ["UP006"]}, "Modern types.\n\nThe old\nones go.\n") == (
        "Modern types.",
        "The old ones go.",
    )


def test_a_long_description_is_the_body_in_lines_of_72_columns() -> None:
    subject, body = words("lint.fix", {"rules": ["UP006"]}, "word " * 30)

    assert subject == "fix UP006"
    assert [len(line) for line in body.splitlines()] == [69, 69, 9]


def test_the_message_keeps_its_account_and_its_trailers_apart_from_the_description() -> None:
    rule = RuleState(
        RuleRequest(
            rule="one",
            contract=facts("lint.fix"),
            input={"rules": ["UP006"]},
            description="a: b\n\nSigned: c",
        )
    )
    message = commit_message(TaskState("t", request=request(), rules=(rule,)), 0)

    paragraphs = message.rstrip("\n").split("\n\n")
    assert paragraphs[:3] == ["a: b", "Signed: c", "0 files"]
    assert [line.split(": ")[0] for line in paragraphs[3].splitlines()] == [
        "Rolecall-Rule", "Rolecall-Contract", "Rolecall-Engine", "Rolecall-Digest",
    ]  # fmt: skip

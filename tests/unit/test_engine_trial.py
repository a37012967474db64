"""A rule is tried on its examples; what does not come out is shown."""

import pytest

from engines.registry import engine_for, engines
from engines.trial import try_contract, try_examples, try_recipe
from schemas.contracts import ContractDocument, builtin_contracts
from schemas.errors import ContractError
from schemas.recipe import Recipe, Rule, RuleExample
from tests.unit.engine_cases import pattern


def rule(after: str, *, before: str = "a()\nc\n", path: str = "example.py", match: str = "a()") -> Rule:
    example = RuleExample(before=before, after=after, path=path)
    return Rule(id="x", contract="rewrite.pattern@1", input=pattern(match, "b()"), examples=(example,))


@pytest.mark.parametrize("contract", builtin_contracts(), ids=lambda one: one.name)
def test_the_contracts_examples_come_out(contract: ContractDocument) -> None:
    try_contract(contract)


def test_every_contract_that_changes_files_has_an_engine_and_examples() -> None:
    changing = [one for one in builtin_contracts() if one.changes == "tree"]

    assert sorted(engine.contract for engine in engines()) == sorted(one.name for one in changing)
    assert all(one.examples for one in changing)
    assert all(engine_for(one.ref) is not None for one in changing)


def test_an_engine_is_found_by_name_and_by_its_own_version_only() -> None:
    assert engine_for("lint.fix") is engine_for("lint.fix@1")
    assert engine_for("lint.fix@2") is None
    assert engine_for("acme.header@1") is None


def test_an_example_that_comes_out_is_no_news() -> None:
    try_examples(rule("b()\nc\n"))


def test_an_example_that_does_not_come_out_is_shown_as_a_diff() -> None:
    with pytest.raises(ContractError) as caught:
        try_examples(rule("b()\r\nd"))

    assert str(caught.value) == (
        "Rule 'x', example 1 does not come out.\n"
        "--- expected\n+++ got\n@@ -1,3 +1,2 @@\n-b()\\r\n-d\n-\\ no line end at the end of the file\n+b()\n+c"
    )


def test_an_example_says_why_something_was_left() -> None:
    with pytest.raises(
        ContractError, match=r"The rule changed nothing. What was left, and why: does not parse"
    ):
        try_examples(rule("b()", before="def f(: a()"))


def test_an_example_of_another_language_is_refused() -> None:
    with pytest.raises(ContractError, match=r"does not look at a\.go. Give the example a `path`"):
        try_examples(rule("b()", path="a.go"))


def test_a_rule_that_is_wrong_itself_is_named() -> None:
    with pytest.raises(ContractError, match=r"Rule 'x': The pattern 'a\(' does not parse as python"):
        try_recipe(Recipe(recipe="r", rules=(rule("b()", match="a("),)))


def test_a_contract_without_an_engine_of_ours_is_taken_as_it_is() -> None:
    try_examples(
        Rule(id="x", contract="acme.header@1", input={}, examples=(RuleExample(before="a", after="b"),))
    )


def test_a_long_diff_is_cut() -> None:
    with pytest.raises(ContractError, match=r"\.\.\. \d+ more lines$"):
        try_examples(rule("".join(f"{n}\n" for n in range(100))))

"""A rule is tried on its own examples, and its engine on the contract's, before anything else happens."""

import difflib
from collections.abc import Sequence

from engines.api import EngineResult
from engines.registry import engine_for
from schemas.contracts import ContractDocument
from schemas.errors import ContractError, at_key
from schemas.recipe import Recipe, Rule, RuleExample
from schemas.validation import checker
from workspace.view import DictView

# A diff longer than this is not read in a terminal.
_MAX_DIFF_LINES = 40
_NO_NEWLINE = "\\ no line end at the end of the file"


def try_recipe(recipe: Recipe) -> None:
    """Check and try every rule. Raises ContractError for the first that fails."""
    for rule in recipe.rules:
        try_examples(rule)


def try_examples(rule: Rule) -> None:
    """Check the rule and try it on its examples; rules of engines that are not ours are taken as they are.

    Raises ContractError that names the rule and shows what came out against what was expected.
    """
    engine = engine_for(rule.contract)
    if engine is None:
        return
    try:
        engine.check(rule.input)
    except ContractError as error:
        raise ContractError(
            f"Rule {rule.id!r}: {error.message}", suggestion=error.suggestion, place=error.place
        ) from error
    for number, example in enumerate(rule.examples, 1):
        if not engine.wants(rule.input, example.path):
            raise ContractError(
                f"Rule {rule.id!r}, example {number}: {rule.contract} does not look at {example.path}.",
                suggestion="Give the example a `path` with the right ending.",
                place=("examples", number - 1, "path"),
            )
        with at_key("examples", number - 1, "before"):
            result = engine.apply(rule.input, DictView({example.path: example.before.encode()}))
        with at_key("examples", number - 1, "after"):
            _compare(result, example, f"Rule {rule.id!r}, example {number}")


def try_contract(contract: ContractDocument) -> None:
    """Try the engine of a contract on the contract's own examples. Raises ContractError."""
    engine = engine_for(contract.ref)
    if engine is None:
        return
    for number, example in enumerate(contract.examples, 1):
        subject = f"{contract.ref}, example {number}"
        input = checker(contract.input).check(example.input, subject)
        engine.check(input)
        result = engine.apply(input, DictView({example.path: example.before.encode()}))
        _compare(result, RuleExample(before=example.before, after=example.after, path=example.path), subject)


def _compare(result: EngineResult, example: RuleExample, subject: str) -> None:
    change = result.changes.get(example.path)
    got = change.data.decode("utf-8", "replace") if change is not None else example.before
    if got == example.after:
        return
    unchanged = " The rule changed nothing." if change is None else ""
    raise ContractError(
        f"{subject} does not come out.{unchanged}{_reasons(result)}\n{_diff(example.after, got)}"
    )


def _reasons(result: EngineResult) -> str:
    reasons = dict.fromkeys(one.reason for one in result.residue)
    return f" What was left, and why: {'; '.join(reasons)}." if reasons else ""


def _diff(expected: str, got: str) -> str:
    lines = list(difflib.unified_diff(_lines(expected), _lines(got), "expected", "got", lineterm="", n=2))
    shown: Sequence[str] = lines[:_MAX_DIFF_LINES]
    cut = [f"... {len(lines) - len(shown)} more lines"] if len(lines) > len(shown) else []
    return "\n".join([*shown, *cut])


def _lines(text: str) -> list[str]:
    lines = [_visible(line) for line in text.split("\n")]
    return [*lines[:-1], *([] if lines[-1] == "" else [lines[-1], _NO_NEWLINE])]


def _visible(line: str) -> str:
    return line.replace("\r", "\\r")

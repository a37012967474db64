"""The recipe loader: what it understands, and what it says about what it refuses."""

from pathlib import Path
from typing import Any

import pytest

from schemas.contracts import ContractDocument, ContractRegistry
from schemas.errors import ContractError
from schemas.recipe import Recipe, RecipeTest, Rule, RuleExample
from schemas.recipe_file import load_recipe, parse_recipe, slug
from schemas.scope import Scope

HEAD = "recipe: tidy\nrules:\n"


def parse(text: str, *more: ContractDocument) -> Recipe:
    contracts = ContractRegistry.builtin()
    for document in more:
        contracts.add(document)
    return parse_recipe(text.encode(), origin="tidy.yaml", contracts=contracts)


def refusal(text: str) -> str:
    with pytest.raises(ContractError) as caught:
        parse(text)
    return str(caught.value)


def contract(name: str, **more: Any) -> ContractDocument:
    return ContractDocument.model_validate(
        {
            "name": name,
            "version": 1,
            "title": "t",
            "description": "d",
            "pool": "acme",
            "changes": "tree",
            "time_limit_s": {"default": 1, "longest": 2},
            "side_effects": "None.",
            "shardable": "file",
            "input": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"text": {"type": "string"}},
            },
            "output": {"type": "object"},
        }
        | more
    )


def test_the_design_s_example_is_read_whole() -> None:
    recipe = parse(
        """
recipe: aware-datetimes
description: Timezone-aware datetimes.
scope: {include: ["src/**", "tests/**"], exclude: ["**/vendored/**"]}
rules:
  - id: utcnow
    rewrite.pattern:
      language: python
      match: datetime.utcnow()
      replace: datetime.now(timezone.utc)
      imports: {add: [from datetime import timezone]}
    examples:
      - before: "a\\n"
        after: "b\\n"
  - lint.fix: {rules: [UP006, UP007], target: py310}
test: {command: [python, -m, pytest, -q], timeout_s: 600}
"""
    )

    assert recipe == Recipe(
        recipe="aware-datetimes",
        description="Timezone-aware datetimes.",
        scope=Scope(include=("src/**", "tests/**"), exclude=("**/vendored/**",)),
        rules=(
            Rule(
                id="utcnow",
                contract="rewrite.pattern@1",
                input={
                    "language": "python",
                    "match": "datetime.utcnow()",
                    "replace": "datetime.now(timezone.utc)",
                    "imports": {"add": ["from datetime import timezone"]},
                },
                examples=(RuleExample(before="a\n", after="b\n"),),
            ),
            Rule(
                id="lint.fix-2",
                contract="lint.fix@1",
                input={
                    "rules": ["UP006", "UP007"],
                    "target": "py310",
                    "unsafe": False,
                    "config": "isolated",
                    "touched_only": False,
                },
            ),
        ),
        test=RecipeTest(command=("python", "-m", "pytest", "-q"), timeout_s=600),
    )


def test_the_canonical_form_survives_a_round_trip() -> None:
    recipe = parse(HEAD + "  - lint.fix: {rules: UP}\n    scope: src/")

    assert Recipe.model_validate(recipe.model_dump(mode="json")) == recipe


def test_text_stays_as_it_was_written_where_the_contract_wants_text() -> None:
    recipe = parse(HEAD + "  - text.replace: {find: 1.10, replace: 010, words: yes, in: docs}")

    assert recipe.rules[0].input == {
        "find": "1.10",
        "replace": "010",
        "words": True,
        "in": ["docs"],
        "regex": False,
        "shardable": "whole",
    }


def test_an_empty_replacement_may_be_left_blank() -> None:
    recipe = parse(HEAD + "  - text.replace:\n      find: x\n      replace:\n")

    assert recipe.rules[0].input["replace"] == ""


def test_a_plug_in_s_contract_is_a_rule_once_it_is_known() -> None:
    recipe = parse(HEAD + "  - acme.header: {text: hi}\n  - acme.header@1:", contract("acme.header"))

    assert [(rule.id, rule.contract, rule.input) for rule in recipe.rules] == [
        ("acme.header-1", "acme.header@1", {"text": "hi"}),
        ("acme.header-2", "acme.header@1", {}),
    ]


def test_a_recipe_without_a_name_is_called_after_its_file(tmp_path: Path) -> None:
    file = tmp_path / "Modernize it.yaml"
    file.write_text("rules:\n  - lint.fix: {rules: UP}\n")

    assert load_recipe(file, ContractRegistry.builtin()).recipe == "modernize-it"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"nowhere\.yaml: cannot be read: No such file"):
        load_recipe(tmp_path / "nowhere.yaml", ContractRegistry.builtin())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rewrite.patern: {}", "3: rule 1: 'rewrite.patern' is neither a key of a rule nor a contract. Did you mean 'rewrite.pattern'? `rolecall contracts rewrite.pattern` shows it."),
        ("rewrite.pattern:\n      language: python\n      mach: a", "5: rewrite.pattern: mach is an unknown key. Did you mean 'match'? `rolecall contracts rewrite.pattern` shows its keys."),
        ("rewrite.pattern: {language: python}", "3: rewrite.pattern lacks the key 'match'. `rolecall contracts"),
        ("lint.fix: {rules: UP, config: repo}", "3: lint.fix: config must be one of 'isolated', 'repository', not 'repo'. Did you mean 'repository'?"),
        ("lint.fix: {rules: UP, touched: abc}", "3: lint.fix: 'touched' is filled in by Rolecall and cannot be written."),
        ("lint.fix: [UP]", "3: lint.fix needs a mapping of its keys."),
        ("acme.header: {}", "3: rule 1: there is no contract 'acme.header': it is not built in, and no live role announced it. Known are lint.fix, rename.symbol, rewrite.pattern, text.replace;"),
        ("test.run: {}", "3: test.run changes no files, so rule 1 cannot be one."),
        ("id: a", "3: rule 1 must have exactly one contract as a key, and has none."),
        ("lint.fix: {rules: UP}\n    text.replace: {find: a, replace: b}", "3: rule 1 must have exactly one contract as a key, and has 'lint.fix' and 'text.replace'."),
        ("lint.fix: {rules: UP}\n    scop: x", "4: rule 1: 'scop' is neither a key of a rule nor a contract. Did you mean 'scope'?"),
        ("lint.fix: {rules: UP}\n    scope: {includ: x}", "4: a scope has no key 'includ'. Did you mean 'include'?"),
        ("lint.fix: {rules: UP}\n    scope: []", "4: `include` is empty, so nothing is in scope."),
        ("id: A b\n    lint.fix: {rules: UP}", "3: 'A b' cannot be an id"),
        ("id: a..b\n    lint.fix: {rules: UP}", "3: 'a..b' cannot be an id"),
        ("id: a.lock\n    lint.fix: {rules: UP}", "3: 'a.lock' cannot be an id"),
        ("id: a\n    lint.fix: {rules: UP}\n  - id: a\n    lint.fix: {rules: UP}", "5: rule 2 has the id 'a', as the rule in line 3. Ids must differ."),
        ("id: a\n    id: b", "4: the key 'id' stands twice (first in line 3)."),
        ("lint.fix: {rules: UP}\n    examples: [{before: a}]", "4: an example: after: field required."),
        ("lint.fix: {rules: UP}\ntest: {command: python -m pytest}", "4: `test.command` must be a list of words. Write [python, -m, pytest]; no shell reads it."),
        ("lint.fix: {rules: UP}\ntest: {command: []}", "4: `test`: command:"),
        ("lint.fix: {rules: UP}\nruls: 3", "4: a recipe has no key 'ruls'. Did you mean 'rules'?"),
        ("lint.fix: !python/object:os.system {rules: UP}", "3: the tag '!python/object:os.system' has no meaning here."),
        ("<<: {a: 1}", "3: `<<` is not supported: write the keys out."),
        ("? [a]\n    : b", "3: a key must be a word."),
        ("lint.fix: {rules: [UP}", "3: not valid YAML:"),
        ("lint.fix: *nothing", "3: not valid YAML: found undefined alias 'nothing'."),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_line_and_what_was_meant(text: str, said: str) -> None:
    assert refusal(HEAD + "  - " + text).startswith(f"tidy.yaml:{said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "tidy.yaml: empty."),
        ("- a", "tidy.yaml:1: a recipe must be a mapping of keys."),
        ("recipe: a", "tidy.yaml:1: a recipe needs `rules`"),
        ("recipe: a\nrules: []", "tidy.yaml:2: `rules` must be a list with at least one rule."),
        ("a: 1\n---\nb: 2", "tidy.yaml:2: not valid YAML: but found another document."),
        ("[" * 60 + "]" * 60, "tidy.yaml:1: nested more than 40 deep."),
        ("[" * 3_000, "tidy.yaml: not valid YAML: nested too deeply."),
        ("a: " + "x" * 300_000, "tidy.yaml: larger than 256 KiB; a recipe is not that large."),
        ("a: \x00", "tidy.yaml: not valid YAML:"),
        ("recipe: a\nrules:\n" + "  - lint.fix: {rules: UP}\n" * 501, "tidy.yaml:3: more than 500 rules."),
    ],
)
def test_what_is_no_recipe_at_all_is_refused(text: str, said: str) -> None:
    assert refusal(text).startswith(said)


def test_aliases_that_explode_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    assert "more than 50000 values once its aliases are followed" in refusal("\n".join(lines))


def test_an_alias_that_holds_itself_is_refused() -> None:
    assert "tidy.yaml:1:" in refusal("a: &a [*a]")


def test_bytes_that_are_not_utf_8_are_refused_with_their_line() -> None:
    with pytest.raises(ContractError, match=r"tidy\.yaml:2: not UTF-8"):
        parse_recipe(b"recipe: a\nrules: \xe9", origin="tidy.yaml", contracts=ContractRegistry.builtin())


def test_a_slug_keeps_what_can_be_kept() -> None:
    assert [slug(text) for text in ("Ü ber-All!", "...", "a" * 80)] == ["ber-all", "", "a" * 60]

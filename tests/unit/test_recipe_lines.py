"""A fault of a rule that only its engine can see is told with its line, and what to do in a line of its own."""

from pathlib import Path

import pytest

from rolecall.__main__ import main
from rolecall.client.recipes import load_checked
from schemas.contracts import ContractRegistry
from schemas.errors import RecipeError

# The rule begins in line 4; the broken value of each case is marked.
HEAD = "recipe: swap\n# one\nrules:\n"
CASES = {
    "language": "  - rewrite.pattern:\n      match: f()\n      language: pyhton  # HERE\n      replace: g()\n",
    "pattern": "  - id: a\n    rewrite.pattern:\n      language: python\n      match: 'f('  # HERE\n      replace: g()\n",
    "replacement": "  - rewrite.pattern:\n      language: python\n      match: f($A)\n      replace: g($B)  # HERE\n",
    "import": (
        "  - rewrite.pattern:\n      language: python\n      match: f()\n      replace: g()\n"
        "      imports:\n        add: ['no import']  # HERE\n"
    ),
    "regex": "  - text.replace:\n      replace: x\n      regex: true\n      find: '(a'  # HERE\n",
    "group": "  - text.replace:\n      find: a\n      regex: true\n      replace: '\\2'  # HERE\n",
    "ruff rule": "  - lint.fix:\n      rules:\n        - UP006\n        - UP999  # HERE\n",
    "target": "  - lint.fix:\n      rules: [UP006]\n      target: py399  # HERE\n",
    "symbol": "  - rename.symbol:\n      to: b\n      symbol: lonely  # HERE\n",
    "new name": "  - rename.symbol:\n      symbol: a.b\n      to: class  # HERE\n",
    "example": (
        "  - text.replace: {find: a, replace: b}\n    examples:\n      - before: a\n        path: x.txt\n"
        "        after: c  # HERE\n"
    ),
    "example of another language": (
        "  - rewrite.pattern: {language: python, match: f(), replace: g()}\n    examples:\n"
        "      - before: a\n        path: x.go  # HERE\n        after: c\n"
    ),
    "second rule": (
        "  - text.replace: {find: a, replace: b}\n  - id: other\n    lint.fix:\n      rules: [XYZ1]  # HERE\n"
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_line_of_a_fault_is_told(case: str, tmp_path: Path) -> None:
    recipe = tmp_path / "swap.yaml"
    recipe.write_text(HEAD + CASES[case])
    line = next(n for n, one in enumerate(recipe.read_text().splitlines(), 1) if "# HERE" in one)

    with pytest.raises(RecipeError) as refused:
        load_checked(str(recipe), ContractRegistry.builtin())

    assert refused.value.message.startswith(f"{recipe}:{line}: ")


@pytest.mark.parametrize("case", ["example", "pattern"])
def test_what_to_do_stands_in_a_line_of_its_own(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "swap.yaml"
    recipe.write_text(HEAD + CASES[case])

    assert main(["recipes", str(recipe)]) == 2

    last = capsys.readouterr().err.rstrip("\n").splitlines()[-1]
    assert last.startswith(("`rolecall contracts text.replace`", "`rolecall contracts rewrite.pattern`"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", r"swap\.yaml: empty"),
        (b"\x7fELF\x00\x01\xff\xfe", r"swap\.yaml:1: not UTF-8"),
        (b"recipe: a\x00b\n", r"swap\.yaml.*not valid YAML"),
        (b"a: &a [*a]\n", r"swap\.yaml:1: .*"),
        (b"a: &a {b: *a}\nrules: *a\n", r"swap\.yaml:1: .*"),
        (b"- " * 3000, r"swap\.yaml.*"),
        (b"x" * (1 << 22), r"swap\.yaml: larger than 256 KiB"),
    ],
)
def test_what_is_no_recipe_is_refused_with_its_name(content: bytes, said: str, tmp_path: Path) -> None:
    recipe = tmp_path / "swap.yaml"
    recipe.write_bytes(content)

    with pytest.raises(RecipeError, match=said):
        load_checked(str(recipe), ContractRegistry.builtin())


def test_a_folder_is_no_recipe(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"is a folder; a recipe is a file\. `rolecall recipes`"):
        load_checked(str(tmp_path), ContractRegistry.builtin())
    (tmp_path / "mine.yaml").touch()
    with pytest.raises(RecipeError, match=r"Did you mean '.*mine\.yaml'"):
        load_checked(str(tmp_path), ContractRegistry.builtin())

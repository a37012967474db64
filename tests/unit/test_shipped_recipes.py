"""The recipes that are shipped do what their examples say."""

from importlib import resources
from importlib.resources.abc import Traversable

import pytest

from engines.trial import try_recipe
from schemas.contracts import ContractRegistry
from schemas.recipe_file import parse_recipe

FILES = sorted(
    (one for one in resources.files("recipes").iterdir() if one.name.endswith(".yaml")), key=lambda f: f.name
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_shipped_recipe_does_what_its_examples_say(file: Traversable) -> None:
    recipe = parse_recipe(file.read_bytes(), origin=file.name, contracts=ContractRegistry.builtin())

    try_recipe(recipe)

    assert recipe.recipe == file.name.removesuffix(".yaml")
    assert recipe.description
    assert all(rule.description and rule.examples for rule in recipe.rules)


def test_there_are_recipes() -> None:
    assert len(FILES) >= 4

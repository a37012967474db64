"""Finding a recipe (a file, or a shipped one by name) and checking it whole before anything runs."""

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from engines.trial import try_examples
from schemas.contracts import ContractRegistry
from schemas.errors import ContractError, RecipeError, RolecallError
from schemas.recipe import Recipe
from schemas.recipe_file import line_in_recipe, parse_recipe
from schemas.suggest import nearest
from schemas.yaml_lines import MAX_YAML_BYTES

SUFFIXES = (".yaml", ".yml")


def shipped_recipes() -> dict[str, Traversable]:
    """The recipes that come with Rolecall, by name."""
    files = (one for one in resources.files("recipes").iterdir() if one.name.endswith(SUFFIXES))
    return {one.name.rpartition(".")[0]: one for one in sorted(files, key=lambda one: one.name)}


def recipe_text(name: str) -> tuple[bytes, str]:
    """The bytes of a recipe and what to call it in errors. A file goes before a shipped recipe of the same name.

    Raises ContractError with the nearest name.
    """
    path = Path(name)
    if path.is_dir():
        raise RecipeError(f"{name}: is a folder; a recipe is a file.", suggestion=_of_folder(path))
    if path.is_file():
        try:
            # One byte more than a recipe may have is enough to refuse it.
            with path.open("rb") as file:
                return file.read(MAX_YAML_BYTES + 1), name
        except OSError as error:
            raise RecipeError(f"{name}: cannot be read: {error.strerror}.") from error
    shipped = shipped_recipes()
    if name in shipped:
        return shipped[name].read_bytes(), f"recipes/{shipped[name].name}"
    hint = nearest(name, [*shipped, *_files_near(path)])
    raise ContractError(
        f"There is no recipe {name!r}: no such file, and none of that name is shipped.",
        suggestion=f"Did you mean {hint!r}?" if hint else "`rolecall recipes` lists what is shipped.",
    )


def load_checked(name: str, contracts: ContractRegistry) -> Recipe:
    """The recipe, every rule of it tried on its own examples. Raises ContractError that names file, line and rule."""
    data, origin = recipe_text(name)
    recipe = parse_recipe(data, origin=origin, contracts=contracts)
    for number, rule in enumerate(recipe.rules):
        try:
            try_examples(rule)
        except RolecallError as error:
            place = error.place if isinstance(error, ContractError) else ()
            raise RecipeError(
                f"{origin}:{line_in_recipe(data, number, place)}: {error.message}",
                suggestion=error.suggestion
                or f"`rolecall contracts {rule.contract.split('@')[0]}` shows its keys and an example.",
            ) from error
    return recipe


def _of_folder(folder: Path) -> str:
    inside = sorted(_files_near(folder / "x"))
    return f"Did you mean {inside[0]!r}?" if inside else "`rolecall recipes` lists what is shipped."


def _files_near(path: Path) -> list[str]:
    folder = path.parent
    if not folder.is_dir():
        return []
    return [str(folder / one.name) for one in folder.iterdir() if one.name.endswith(SUFFIXES)]

"""The shape of the code: who may import whom, a saga without I/O, files of a size that can be read, plain names."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FIVE = frozenset({"schemas", "bus", "workspace", "engines", "llm"})
ROLES = frozenset({"planner", "executor", "reviewer", "tester", "supervisor", "gateway"})
# Who may import whom, besides itself. Roles meet nowhere but in `rolecall`.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "schemas": frozenset(),
    "bus": frozenset({"schemas"}),
    "workspace": frozenset({"schemas"}),
    "engines": frozenset({"schemas", "workspace"}),
    "llm": frozenset({"schemas"}),
    **dict.fromkeys(ROLES, FIVE),
    "recipes": frozenset({"schemas"}),
    "rolecall": FIVE | ROLES | {"recipes"},
    # A plug-in author imports from `rolecall` only, and an example shows it.
    "examples": frozenset({"rolecall"}),
    "benchmarks": FIVE | ROLES | {"recipes", "rolecall"},
}
SHIPPED = frozenset(MAY_IMPORT) - {"benchmarks", "examples"}

# All that the saga is made of: data, hashes, globs and words. No clock, no disk, no network, no chance.
SAGA_MAY_IMPORT = frozenset(
    {
        "collections.abc", "dataclasses", "enum", "hashlib", "hmac", "textwrap", "typing", "unicodedata",
        "immutables", "pydantic", "wcmatch",
        "schemas.base", "schemas.contracts", "schemas.errors", "schemas.handoff", "schemas.lossless", "schemas.plan",
        "schemas.scope", "schemas.task", "schemas.words",
    }
)  # fmt: skip

MOST_LINES = 400
# A suite states many facts about one idea; it is still read by people.
MOST_LINES_OF_TESTS = 550
NAMELESS = frozenset({"utils", "util", "helpers", "helper", "misc", "common", "stuff", "manager"})


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def files_of(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, wherever it stands; what only runs as a script is left out."""
    for node in ast.walk(_without_script(parsed(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where things come from"
            yield node.lineno, node.module or ""


def _without_script(module: ast.Module) -> ast.Module:
    body = [
        node for node in module.body if not (isinstance(node, ast.If) and "__main__" in ast.dump(node.test))
    ]
    return ast.Module(body=body, type_ignores=[])


def where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_imports_point_one_way(package: str) -> None:
    allowed = MAY_IMPORT[package] | {package}

    wrong = [
        f"{where(path, line)} imports {module}"
        for path in files_of(package)
        for line, module in imports_of(path)
        if (top := module.split(".")[0]) in MAY_IMPORT and top not in allowed
    ]

    assert wrong == []


def test_every_package_has_its_place_in_the_table() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}

    assert packages <= set(MAY_IMPORT)


def test_nothing_that_ships_imports_tests() -> None:
    wrong = [
        where(path, line)
        for path in files_of(*MAY_IMPORT)
        for line, module in imports_of(path)
        if module.split(".")[0] == "tests"
    ]

    assert wrong == []


def test_the_saga_is_made_of_data_alone() -> None:
    wrong = [
        f"{where(path, line)} imports {module}"
        for path in files_of("supervisor/saga")
        for line, module in imports_of(path)
        if not module.startswith("supervisor.saga") and module not in SAGA_MAY_IMPORT
    ]

    assert wrong == []


def test_the_saga_waits_for_nothing_and_opens_nothing() -> None:
    wrong = [
        f"{where(path, node.lineno)} {ast.unparse(node)[:60]}"
        for path in files_of("supervisor/saga")
        for node in ast.walk(_without_script(parsed(path)))
        if isinstance(node, ast.AsyncFunctionDef | ast.Await)
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"open", "print"}
        )
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("module", "homes"),
    [
        ("aio_pika", ("bus/amqp", "benchmarks")),
        ("aiormq", ("bus/amqp", "benchmarks")),
        ("pamqp", ("bus/amqp",)),
        ("subprocess", ("workspace", "rolecall/processes", "benchmarks")),
        ("sqlalchemy", ("supervisor/journal",)),
        ("pickle", ()),
        ("openai", ("llm",)),
        ("anthropic", ("llm",)),
        ("pydantic_ai", ("llm",)),
    ],
)
def test_one_place_knows_each_library(module: str, homes: tuple[str, ...]) -> None:
    wrong = [
        where(path, line)
        for path in files_of(*MAY_IMPORT)
        if not any(path.is_relative_to(ROOT / home) for home in homes)
        for line, name in imports_of(path)
        if name == module or name.startswith(f"{module}.")
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("packages", "most"), [(tuple(sorted(MAY_IMPORT)), MOST_LINES), (("tests",), MOST_LINES_OF_TESTS)]
)
def test_no_file_is_longer_than_can_be_read(packages: tuple[str, ...], most: int) -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_bytes().splitlines()) for path in files_of(*packages)
    }

    assert {name: length for name, length in lengths.items() if length > most} == {}


def test_every_file_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT)) for path in files_of(*SHIPPED) if not ast.get_docstring(parsed(path))
    ]

    assert silent == []


def test_files_are_named_for_an_idea() -> None:
    nameless = [
        str(path.relative_to(ROOT)) for path in files_of(*MAY_IMPORT, "tests") if path.stem in NAMELESS
    ]

    assert nameless == []


def test_errors_end_in_error_and_nothing_else_does() -> None:
    wrong = [
        f"{where(path, node.lineno)} {node.name}"
        for path in files_of(*SHIPPED)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
        and node.name.endswith("Error")
        != any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases)
    ]

    assert wrong == []


def test_no_product_class_looks_like_a_test() -> None:
    """`Test…` names what tests do here, so such a class says that it is none."""
    wrong = [
        f"{where(path, node.lineno)} {node.name}"
        for path in files_of(*SHIPPED)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
        and node.name.startswith("Test")
        and "__test__ = False" not in ast.unparse(node)
    ]

    assert wrong == []

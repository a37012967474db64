"""`python -m rolecall.demo`: download, make a repository and a test environment, refactor, report."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from rolecall.__main__ import main as rolecall
from rolecall.demo.package import ARROW, fetched, made_repository
from rolecall.demo.recipe_place import RECIPE
from rolecall.processes.python_tools import made_environment
from schemas.errors import RolecallError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration; returns its exit code."""
    parser = argparse.ArgumentParser(prog="rolecall.demo", description=main.__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path(".demo"), help="where everything goes (%(default)s)"
    )
    options, more = parser.parse_known_args(argv)
    try:
        repository, environment = _prepare(options.folder.absolute())
    except RolecallError as error:
        click.secho(f"The demonstration cannot start: {error}", fg="red", err=True)
        return int(error.exit_code)
    recipe = _near(RECIPE)
    words = [
        "run",
        "--recipe",
        recipe,
        "--repo",
        _near(repository),
        "--env",
        str(environment),
        "--yes",
        *more,
    ]
    _say(f"\n$ rolecall {' '.join(words)}\n")
    code = rolecall(words)
    if code == 0:
        _say(f"\nThat repository is {_near(repository)}; `make demo` makes it anew. Then one of yours:")
        _say("  rolecall recipes")
        _say("  rolecall run --recipe RECIPE --repo /path/to/your/repository")
    return code


def _prepare(folder: Path) -> tuple[Path, Path]:
    _say(f"1. {ARROW.name} {ARROW.version} from the package registry")
    archive = fetched(ARROW, folder / "downloads")
    _say(f"2. a virtual environment with what its tests need: {', '.join(ARROW.test_requirements)}")
    environment = made_environment(folder / "env", ARROW.test_requirements)
    repository = made_repository(ARROW, archive, folder / ARROW.name)
    _say(f"3. a git repository of it: {_near(repository)}")
    return repository, environment


def _near(path: Path) -> str:
    """The path as it is typed from here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _say(text: str) -> None:
    click.echo(text)


if __name__ == "__main__":
    sys.exit(main())

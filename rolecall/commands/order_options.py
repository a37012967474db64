"""The options that say what shall be done to which repository: the same for `run` and `submit`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from workspace.effects import Effect

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--recipe", "-r", required=True, metavar="FILE|NAME", help="A recipe's file, or the name of a shipped one."),
    click.option("--repo", type=click.Path(path_type=Path), default=Path(), help="The git repository (default: here)."),
    click.option("--base", metavar="REF", help="The commit to start from (default: HEAD)."),
    click.option("--include", multiple=True, metavar="GLOB", help="Only these paths; may be repeated."),
    click.option("--exclude", multiple=True, metavar="GLOB", help="Not these paths; may be repeated."),
    click.option("--test", metavar="COMMAND", help='The tests, for instance "python -m pytest -q"; no shell reads it.'),
    click.option("--test-timeout", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Limit of a test run."),
    click.option("--env", metavar="FOLDER", help="The virtual environment of the tests (default: the active one, .venv)."),
    click.option("--allow", multiple=True, metavar="EFFECT", help=f"What needs your word: {', '.join(Effect)}, or a contract of high risk by name."),
    click.option("--allow-untested", is_flag=True, help="Land although no tests ran."),
    click.option("--no-tests", is_flag=True, help="Run no tests at all; what lands is called untested."),
    click.option("--limit", "limits", multiple=True, metavar="NAME=VALUE", help="attempts_per_step, wall_time_s, actions, wait_for_role_s, ..."),
    click.option("--branch", metavar="NAME", help="The branch to create (default: rolecall/RECIPE-ID)."),
)  # fmt: skip


def order_options(function: F) -> F:
    """All of them."""
    for decorate in reversed(_OPTIONS):
        function = decorate(function)
    return function

"""Options and arguments that several commands share, so that they mean the same everywhere."""

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from pydantic import BaseModel

from bus.settings import Settings, load_settings

F = TypeVar("F", bound=Callable[..., Any])


def environment_option(function: F) -> F:
    """`--environment`: whose queues and state."""
    return click.option(
        "--environment",
        "-E",
        metavar="NAME",
        help="Whose queues and state (ROLECALL_ENVIRONMENT; default: user and host).",
    )(function)


def bus_options(function: F) -> F:
    """Where broker and hub are, for who stands elsewhere than the running stack."""
    for decorate in (
        click.option(
            "--hub", metavar="PATH|URL", help="The git repository between the processes (ROLECALL_HUB)."
        ),
        click.option(
            "--broker",
            metavar="URL",
            help="RabbitMQ; a password is better put in ROLECALL_BROKER_URL.",
        ),
        environment_option,
    ):
        function = decorate(function)
    return function


def json_option(function: F) -> F:
    """`--json`: the same as data."""
    return click.option(
        "--json", "as_json", is_flag=True, help="The same as JSON; times are microseconds UTC."
    )(function)


def task_argument(*, required: bool = False) -> Callable[[F], F]:
    """`TASK`: an id, or the beginning or end of one that fits a single task; the newest if it may be left out."""
    return click.argument("task", required=required, metavar="TASK" if required else "[TASK]")


def settings_of(environment: str | None, **more: str | None) -> Settings:
    """The settings that these options mean."""
    return load_settings(environment=environment, **more)  # type: ignore[arg-type]


def echo_json(value: BaseModel | Sequence[BaseModel] | dict[str, Any]) -> None:
    """Print models as JSON."""
    match value:
        case BaseModel():
            data: Any = value.model_dump(mode="json")
        case dict():
            data = value
        case _:
            data = [one.model_dump(mode="json") for one in value]
    click.echo(json.dumps(data, indent=2, ensure_ascii=True))

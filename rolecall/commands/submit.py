"""`rolecall submit`: hand a refactor in and go."""

from typing import Any

import click

from rolecall.commands.options import bus_options, json_option, settings_of
from rolecall.commands.order_options import order_options


@click.command("submit")
@order_options
@bus_options
@json_option
def command(
    environment: str | None, broker: str | None, hub: str | None, as_json: bool, **order: Any
) -> None:
    """Submit a refactor to the running stack and print its id; `rolecall watch ID` follows it.

    The request is durable once the id is printed. Nothing is started: that is what `rolecall up` and `run` do.
    """
    import asyncio

    from rolecall.client.order import make_order
    from rolecall.client.reading import known_contracts
    from rolecall.client.submission import hand_in
    from rolecall.client.terminal import echo_json
    from rolecall.commands.wishes import wishes_of

    settings = settings_of(environment, broker_url=broker, hub=hub)
    made = make_order(wishes_of(**order, settings=settings), known_contracts(settings))
    asyncio.run(hand_in(made, settings))
    if as_json:
        echo_json({"task": made.task, "branch": made.request.branch, "base": made.request.base})
        return
    for path in made.request.left_out:
        click.echo(f"not in it, because it is not committed: {path}", err=True)
    click.echo(made.task)

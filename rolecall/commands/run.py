"""`rolecall run`: the whole way from a recipe to a branch."""

import sys
from typing import Any

import click

from rolecall.commands.options import bus_options, json_option, settings_of
from rolecall.commands.order_options import order_options


@click.command("run")
@order_options
@click.option("--executors", type=click.IntRange(1, 256), help="How many to start, if nothing runs yet.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before the start.")
@click.option("--solo", is_flag=True, help="Everything in this one process, without RabbitMQ.")
@click.option("--deliver/--no-deliver", default=True, help="Create the branch at the end (default: yes).")
@click.option(
    "--follow/--no-follow",
    default=True,
    help="Do it again if the branch that it started from moves meanwhile (default: yes).",
)
@click.option("--sandbox", type=click.Choice(["bubblewrap", "none"]), help="ROLECALL_SANDBOX.")
@json_option
@bus_options
def command(
    executors: int | None,
    yes: bool,
    solo: bool,
    deliver: bool,
    follow: bool,
    sandbox: str | None,
    as_json: bool,
    environment: str | None,
    broker: str | None,
    hub: str | None,
    **order: Any,
) -> int:
    """Run a refactor: submit it, watch it, report, and create the branch.

    Starts what is not running, and stops what it started. Ends by the outcome: 0 all landed, 1 failed, 3 partly
    landed, 5 canceled, 6 broker unreachable. Ctrl-C once cancels and reports what landed, twice stops now.
    """
    from rolecall.client.running import How, run
    from rolecall.client.terminal import console
    from rolecall.commands.wishes import wishes_of

    settings = settings_of(environment, broker_url=broker, hub=hub, sandbox=sandbox)
    how = How(executors=executors, yes=yes, solo=solo, deliver=deliver, as_json=as_json, follow=follow)
    # With --json, standard output is for the report alone.
    return run(
        wishes_of(**order, settings=settings), settings, how, console(sys.stderr if as_json else sys.stdout)
    )

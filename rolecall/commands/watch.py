"""`rolecall watch`: follow a task to its end."""

import click

from rolecall.commands.options import bus_options, json_option, settings_of, task_argument


@click.command("watch")
@task_argument()
@click.option(
    "--deliver/--no-deliver",
    default=None,
    help="Create the branch at the end (default: if you stand at the repository).",
)
@json_option
@bus_options
def command(
    task: str | None,
    deliver: bool | None,
    as_json: bool,
    environment: str | None,
    broker: str | None,
    hub: str | None,
) -> int:
    """Follow a task until it is over, then tell its report; ends by its outcome. Ctrl-C leaves the task running.

    With --json, standard output is the report alone.

    TASK is an id or a part of one that is unique; without it, the newest task.
    """
    import asyncio

    from rolecall.client.attending import attend

    settings = settings_of(environment, broker_url=broker, hub=hub)
    return asyncio.run(attend(settings, task, deliver=deliver, as_json=as_json))

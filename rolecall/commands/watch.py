"""`rolecall watch`: follow a task to its end."""

import click

from rolecall.commands.options import bus_options, settings_of, task_argument


@click.command("watch")
@task_argument()
@click.option("--deliver/--no-deliver", default=False, help="Create the branch when the task is completed.")
@bus_options
def command(
    task: str | None, deliver: bool, environment: str | None, broker: str | None, hub: str | None
) -> int:
    """Follow a task until it is over, then tell its report; ends by its outcome. Ctrl-C leaves the task running.

    TASK is an id or a part of one that is unique; without it, the newest task.
    """
    import asyncio

    from rolecall.client.attending import attend

    settings = settings_of(environment, broker_url=broker, hub=hub)
    return asyncio.run(attend(settings, task, deliver=deliver))

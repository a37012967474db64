"""`rolecall cancel`: a task ends; what landed is kept."""

import click

from rolecall.commands.options import bus_options, settings_of, task_argument


@click.command("cancel")
@task_argument(required=True)
@click.option("--reason", default="asked by the user", show_default=True, help="What the report shall say.")
@bus_options
def command(task: str, reason: str, environment: str | None, broker: str | None, hub: str | None) -> None:
    """End a task: what runs is stopped, what landed is kept and can be delivered.

    TASK is an id or a part of one that is unique.
    """
    import asyncio

    from rolecall.client.cancelling import cancel
    from rolecall.client.phrases import short
    from rolecall.client.reading import chosen, opened_journal
    from schemas.errors import ContractError

    settings = settings_of(environment, broker_url=broker, hub=hub)
    with opened_journal(settings) as reader:
        full = chosen(reader, task)
        status = reader.progress(full).status
    if status.is_final:
        raise ContractError(
            f"Task {short(full)} is over already: {status}.",
            suggestion=f"`rolecall report {short(full)}` tells it.",
        )
    asyncio.run(cancel(settings, full, reason))
    click.echo(f"Asked for the end of {short(full)}; `rolecall status {short(full)}` shows when it has come.")

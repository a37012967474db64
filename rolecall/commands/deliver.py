"""`rolecall deliver`: the branch of a finished task, in the user's repository."""

from pathlib import Path

import click

from rolecall.commands.options import bus_options, settings_of, task_argument


@click.command("deliver")
@task_argument(required=True)
@click.option(
    "--repo", type=click.Path(path_type=Path), help="The repository (default: where it was submitted from)."
)
@click.option("--branch", metavar="NAME", help="Another name for the branch.")
@bus_options
def command(
    task: str,
    repo: Path | None,
    branch: str | None,
    environment: str | None,
    broker: str | None,
    hub: str | None,
) -> None:
    """Create the branch of a finished task in your repository.

    Nothing else there is touched: no file, no index, no other branch. TASK is an id or a part of one that is unique.
    """
    import asyncio

    from rolecall.client.delivery import check_deliverable, deliver
    from rolecall.client.reading import chosen, opened_hub, opened_journal, read_report
    from rolecall.client.telling_delivery import tell_delivered
    from workspace.source import open_source

    settings = settings_of(environment, broker_url=broker, hub=hub)
    with opened_journal(settings) as reader:
        report = read_report(settings, reader, chosen(reader, task))
    check_deliverable(report)
    with opened_hub(settings) as place:
        source = open_source(repo or Path(report.repository))
        delivered = deliver(source, place, report.head, branch or report.branch)
    if delivered.is_new:
        click.echo(f"Created {delivered.branch} at {delivered.commit[:12]} in {source.path}.")
        asyncio.run(tell_delivered(settings, report.task, delivered, str(source.path)))
    else:
        click.echo(f"{delivered.branch} is at {delivered.commit[:12]} in {source.path} already.")

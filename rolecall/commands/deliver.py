"""`rolecall deliver`: the branch of a finished task, in the user's repository."""

from dataclasses import asdict
from pathlib import Path

import click

from rolecall.commands.options import bus_options, json_option, settings_of, task_argument


@click.command("deliver")
@task_argument(required=True)
@click.option(
    "--repo", type=click.Path(path_type=Path), help="The repository (default: where it was submitted from)."
)
@click.option("--branch", metavar="NAME", help="Another name for the branch.")
@bus_options
@json_option
def command(
    task: str,
    repo: Path | None,
    branch: str | None,
    as_json: bool,
    environment: str | None,
    broker: str | None,
    hub: str | None,
) -> None:
    """Create the branch of a finished task in your repository.

    Nothing else there is touched: no file, no index, no other branch. TASK is an id or a part of one that is unique.
    """
    import asyncio

    from rolecall.client.delivery import check_deliverable, deliver
    from rolecall.client.moving_base import moved_since, remark
    from rolecall.client.reading import chosen, opened_hub, opened_journal, read_report
    from rolecall.client.telling_delivery import tell_delivered
    from rolecall.client.terminal import echo_json
    from workspace.source import Base, open_source

    settings = settings_of(environment, broker_url=broker, hub=hub)
    with opened_journal(settings) as reader:
        report = read_report(settings, reader, chosen(reader, task))
    check_deliverable(report)
    with opened_hub(settings) as place:
        source = open_source(repo or Path(report.repository))
        moved = moved_since(source, Base(report.base, report.base_ref))
        delivered = deliver(source, place, report.head, branch or report.branch)
    if delivered.is_new:
        asyncio.run(tell_delivered(settings, report.task, delivered, str(source.path)))
    if moved is not None:
        click.echo(f"Note: {remark(moved)}", err=True)
    if as_json:
        echo_json({"task": report.task, "repository": str(source.path), **asdict(delivered)})
    elif delivered.is_new:
        click.echo(f"Created {delivered.branch} at {delivered.commit[:12]} in {source.path}.")
    else:
        click.echo(f"{delivered.branch} is at {delivered.commit[:12]} in {source.path} already.")

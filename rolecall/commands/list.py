"""`rolecall list`: the tasks, for a user who remembers no id."""

import click

from rolecall.commands.options import echo_json, environment_option, json_option, settings_of
from schemas.words import TaskStatus

_STATES = [str(state) for state in TaskStatus]


@click.command("list")
@click.option("--since", metavar="WHEN", help="`yesterday`, `3h`, `2 days ago`, or a date.")
@click.option(
    "--grep", metavar="WORD", help="Only tasks with this in id, recipe, repository, user or reason."
)
@click.option("--state", type=click.Choice(_STATES), help="Only tasks in this state.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@environment_option
@json_option
def command(
    since: str | None, grep: str | None, state: str | None, limit: int, environment: str | None, as_json: bool
) -> None:
    """The tasks of this environment, the newest first."""
    from rolecall.client import phrases
    from rolecall.client.lists import tasks_table
    from rolecall.client.reading import opened_journal
    from rolecall.client.terminal import console, show
    from schemas.clock import now_us

    now = now_us()
    since_us = phrases.since(since, now_us=now) if since else None
    with opened_journal(settings_of(environment)) as reader:
        found = reader.tasks(since_us=since_us, grep=grep, state=TaskStatus(state) if state else None)
    lines = found[:limit]
    if as_json:
        echo_json(lines)
    elif not lines:
        click.echo(
            "No task fits." if since or grep or state else "No task yet; `rolecall run` makes the first one."
        )
    else:
        show(console(), tasks_table(lines, now_us=now))
        if len(found) > limit:
            click.echo(f"and {len(found) - limit} older ones; --limit shows more")

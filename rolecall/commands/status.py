"""`rolecall status`: where a task is."""

import click

from rolecall.commands.options import echo_json, environment_option, json_option, settings_of, task_argument


@click.command("status")
@task_argument()
@environment_option
@json_option
def command(task: str | None, environment: str | None, as_json: bool) -> None:
    """Where a task is, and what it waits for; also when nothing runs any more.

    TASK is an id or a part of one that is unique; without it, the newest task.
    """
    from bus.connection_file import live_connection
    from rolecall.client.progress_view import summary
    from rolecall.client.reading import chosen, opened_journal
    from rolecall.client.terminal import console, show

    settings = settings_of(environment)
    with opened_journal(settings) as reader:
        picture = reader.progress(chosen(reader, task))
    if as_json:
        echo_json(picture)
        return
    show(console(), summary(picture))
    if not picture.status.is_final and live_connection(settings.state_dir) is None:
        click.echo("Nothing runs in this environment now; `rolecall up` takes the task up again.")

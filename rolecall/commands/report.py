"""`rolecall report`: the whole story of a task."""

import click

from rolecall.commands.options import echo_json, environment_option, json_option, settings_of, task_argument


@click.command("report")
@task_argument()
@environment_option
@json_option
@click.option("--md", "as_markdown", is_flag=True, help="As Markdown, for a pull request or a ticket.")
def command(task: str | None, environment: str | None, as_json: bool, as_markdown: bool) -> None:
    """What a task did, how that is proved, what did not land and why, and what it cost.

    TASK is an id or a part of one that is unique; without it, the newest task.
    """
    from rolecall.client import report_markdown, report_text
    from rolecall.client.reading import chosen, opened_journal, read_report
    from rolecall.client.terminal import console, program_of, show

    if as_json and as_markdown:
        raise click.UsageError("--json and --md exclude each other.")
    settings = settings_of(environment)
    with opened_journal(settings) as reader:
        report = read_report(settings, reader, chosen(reader, task))
    if as_json:
        echo_json(report)
    elif as_markdown:
        click.echo(report_markdown.render(report), nl=False)
    else:
        show(console(), report_text.render(report, program_of(settings)))

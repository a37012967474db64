"""`rolecall trace`: the waterfall of one correlation_id."""

import click

from rolecall.commands.options import echo_json, environment_option, json_option, settings_of, task_argument


@click.command("trace")
@task_argument()
@click.option(
    "--messages", is_flag=True, help="Every message too: from whom, to whom, because of which other."
)
@environment_option
@json_option
def command(task: str | None, messages: bool, environment: str | None, as_json: bool) -> None:
    """Every action of a task over all processes: who, waited, ran, retried, verdict.

    TASK is an id or a part of one that is unique; without it, the newest task.
    """
    from rolecall.client import trace_text
    from rolecall.client.reading import chosen, opened_journal
    from rolecall.client.terminal import console, show
    from schemas.clock import now_us
    from supervisor.journal.trace import trace as read_trace

    with opened_journal(settings_of(environment)) as reader:
        trace = read_trace(reader, chosen(reader, task))
    if as_json:
        echo_json(trace)
    else:
        show(console(), trace_text.render(trace, now_us=now_us(), messages=messages))

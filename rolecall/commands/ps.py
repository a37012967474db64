"""`rolecall ps`: the roll call."""

import click

from rolecall.commands.options import environment_option, json_option, settings_of


@click.command("ps")
@click.option("--all", "everyone", is_flag=True, help="Those that are lost or left, too.")
@environment_option
@json_option
def command(everyone: bool, environment: str | None, as_json: bool) -> None:
    """Every process that answers the roll call: where it is, its slots, what it runs, its last heartbeat."""
    from rolecall.client.lists import workers_table
    from rolecall.client.reading import opened_journal
    from rolecall.client.roll_call import roll_call
    from rolecall.client.terminal import console, echo_json, show
    from schemas.clock import now_us

    settings = settings_of(environment)
    with opened_journal(settings) as reader:
        lines = roll_call(reader, settings.state_dir, everyone=everyone)
    if as_json:
        echo_json(lines)
    elif lines:
        show(console(), workers_table(lines, now_us=now_us()))
    else:
        click.echo("Nobody answers the roll call. `rolecall up` starts all roles on this machine.")

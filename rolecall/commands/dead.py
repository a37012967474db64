"""`rolecall dead`: messages that could not be used, with the reason and their bytes."""

import sys

import click

from rolecall.commands.options import echo_json, environment_option, json_option, settings_of


@click.group("dead")
def command() -> None:
    """Messages that could not be used: set aside with the reason, never lost."""


@command.command("list")
@environment_option
@json_option
def list_them(environment: str | None, as_json: bool) -> None:
    """The parked messages, the newest first."""
    from rolecall.client.lists import dead_table
    from rolecall.client.reading import opened_journal
    from rolecall.client.terminal import console, show
    from schemas.clock import now_us

    with opened_journal(settings_of(environment)) as reader:
        lines = reader.dead()
    if as_json:
        echo_json(lines)
    elif lines:
        show(console(), dead_table(lines, now_us=now_us()))
    else:
        click.echo("No message was parked.")


@command.command("show")
@click.argument("dead_id", metavar="ID")
@click.option("--raw", is_flag=True, help="The bytes as they came, to standard output.")
@environment_option
@json_option
def show(dead_id: str, raw: bool, environment: str | None, as_json: bool) -> None:
    """One parked message: why, and what is in it."""
    from rolecall.client.dead_letter import told
    from rolecall.client.reading import opened_journal

    with opened_journal(settings_of(environment)) as reader:
        data = reader.dead_raw(dead_id)
        line = next(one for one in reader.dead() if one.id == dead_id)
    if raw:
        sys.stdout.buffer.write(data)
    elif as_json:
        echo_json({**line.model_dump(mode="json"), "hex": data.hex()})
    else:
        click.echo(told(line, data))

"""`rolecall doctor`: is this machine fit?"""

from dataclasses import asdict

import click

from rolecall.commands.options import bus_options, echo_json, json_option, settings_of

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command("doctor")
@bus_options
@json_option
def command(environment: str | None, broker: str | None, hub: str | None, as_json: bool) -> int:
    """Check Python, git, sandbox, RabbitMQ, disk, permissions and versions; each line says what to do."""
    from rolecall.doctor import examine, exit_code, lines

    findings = examine(settings_of(environment, broker_url=broker, hub=hub))
    code = exit_code(findings)
    if as_json:
        echo_json({"findings": [asdict(one) for one in findings], "exit_code": int(code)})
        return code
    for grade, text in lines(findings):
        click.secho(text, fg=_COLOURS[grade] if not text.startswith("ok") else None)
    return code

"""`rolecall up`: all roles on this machine, as separate processes."""

import click

from rolecall.commands.options import environment_option, settings_of


@click.command("up")
@click.option("--executors", type=click.IntRange(1, 256), help="How many executors (default: by processors).")
@click.option(
    "--slots", type=click.IntRange(1, 64), default=1, show_default=True, help="Actions each does at once."
)
@click.option(
    "--testers", type=click.IntRange(1, 64), default=1, show_default=True, help="Test runs at once."
)
@click.option(
    "--broker", metavar="URL", help="RabbitMQ to use (ROLECALL_BROKER_URL); without one, a private node."
)
@click.option("--sandbox", type=click.Choice(["bubblewrap", "none"]), help="ROLECALL_SANDBOX.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="ROLECALL_LOG_LEVEL."
)
@click.option("--until-unused", is_flag=True, hidden=True, help="End with the last client.")
@environment_option
def command(
    executors: int | None,
    slots: int,
    testers: int,
    broker: str | None,
    sandbox: str | None,
    log_level: str | None,
    until_unused: bool,
    environment: str | None,
) -> int:
    """Start supervisor, planner, executors, reviewer and tester on this machine, and keep them running.

    Their logs are merged here, one line a record. Ctrl-C lets them finish what they do; a second one kills them.
    """
    from rolecall.processes.running import run_stack

    settings = settings_of(environment, broker_url=broker, sandbox=sandbox, log_level=log_level)
    return run_stack(settings, executors=executors, slots=slots, testers=testers, until_unused=until_unused)

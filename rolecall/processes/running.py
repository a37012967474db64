"""Runs a stack in the foreground: its logs on the terminal, signals answered, and how others join told once."""

import asyncio
import os
import sys

from rich.text import Text

from bus.redaction import redact
from bus.settings import Settings
from bus.stopping import StopSignal, signals_to
from rolecall.client.terminal import console
from rolecall.processes.child import Say
from rolecall.processes.log_lines import LogLines
from rolecall.processes.plan import StackPlan, default_executors
from rolecall.processes.stack import Ready, Stack
from schemas.errors import ExitCode


def run_stack(
    settings: Settings,
    *,
    executors: int | None,
    slots: int,
    testers: int,
    until_unused: bool,
) -> int:
    """Run until stopped; returns the exit code. Raises RolecallError if it cannot start or be kept."""
    plan = StackPlan(
        environment=settings.environment,
        state_dir=settings.state_dir,
        executors=executors or default_executors(os.cpu_count() or 1),
        slots=slots,
        testers=testers,
        broker_url=settings.broker_url,
        sandbox=str(settings.sandbox),
        log_level=settings.log_level,
    )
    say = LogLines(console(sys.stdout))
    stop = StopSignal()
    asyncio.run(_run(plan, say, stop, until_unused=until_unused))
    return ExitCode.FAILED if stop.is_at_once else ExitCode.OK


async def _run(plan: StackPlan, say: Say, stop: StopSignal, *, until_unused: bool) -> None:
    with signals_to(stop):
        stack = Stack(
            plan,
            say,
            inherited=dict(os.environ),
            on_ready=lambda ready: console(sys.stdout).print(welcome(plan, ready), soft_wrap=True),
            until_unused=until_unused,
        )
        await stack.run(stop)


def welcome(plan: StackPlan, ready: Ready) -> Text:
    """That everything is there, and how another terminal and another machine join. No password is printed."""
    connection = ready.connection
    place = redact({"broker": connection.broker_url})["broker"]
    kind = "a private node" if ready.has_private_node else place
    text = Text.assemble(
        ("\nRolecall is up", "bold green"),
        f": environment {plan.environment}, {plan.executors} executors with {plan.slots} slots each, broker: {kind}\n",
        "  refactor               ",
        ("rolecall run --recipe RECIPE --repo .\n", "cyan"),
        "  one more executor      ",
        ("rolecall executor\n", "cyan"),
        "  who is there           ",
        ("rolecall ps\n", "cyan"),
    )
    if ready.has_private_node:
        text.append(
            "  from another machine   give a broker that it can reach: rolecall up --broker amqp://…\n"
        )
    else:
        join = (
            f"rolecall executor --environment {plan.environment} "
            f"--hub ssh://HOST{connection.hub} --public-key {connection.public_key}"
        )
        text.append("  from another machine   ROLECALL_BROKER_URL=… ").append(f"{join}\n", style="cyan")
    return text

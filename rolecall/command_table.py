"""The table of commands: name, section, one line, and the module that is imported when the command is used.

Only the table is loaded at the start, so `rolecall --version` does not pay for what it does not use.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import cast

import click

from schemas.suggest import nearest
from schemas.version import VERSION


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: `place` is `module:attribute` under `rolecall.commands`."""

    name: str
    section: str
    summary: str
    place: str


_REFACTOR = "Refactor"
_LOOK = "Look"
_PROCESSES = "Processes"
_KNOW = "Know"

TABLE = (
    Entry("run", _REFACTOR, "Submit a refactor, watch it, report, and deliver the branch.", "run:command"),
    Entry("submit", _REFACTOR, "Submit a refactor and print its id.", "submit:command"),
    Entry("watch", _REFACTOR, "Follow a running task; deliver when it is done.", "watch:command"),
    Entry(
        "deliver", _REFACTOR, "Create the branch of a finished task in your repository.", "deliver:command"
    ),
    Entry("cancel", _REFACTOR, "End a task; what landed stays landed.", "cancel:command"),
    Entry("list", _LOOK, "The tasks of this environment, newest first.", "list:command"),
    Entry("status", _LOOK, "Where a task is, and what it waits for.", "status:command"),
    Entry("report", _LOOK, "What a task did, how that is proved, what did not land.", "report:command"),
    Entry("diff", _LOOK, "The change itself, whole or rule by rule.", "diff:command"),
    Entry("trace", _LOOK, "Every action and message of a task over time.", "trace:command"),
    Entry("ps", _LOOK, "Every process that answers the roll call.", "ps:command"),
    Entry("dead", _LOOK, "Messages that could not be used.", "dead:command"),
    Entry("up", _PROCESSES, "Start all roles on this machine.", "up:command"),
    Entry("supervisor", _PROCESSES, "Run a supervisor.", "roles:supervisor"),
    Entry("planner", _PROCESSES, "Run a planner.", "roles:planner"),
    Entry("executor", _PROCESSES, "Run an executor.", "roles:executor"),
    Entry("reviewer", _PROCESSES, "Run a reviewer.", "roles:reviewer"),
    Entry("tester", _PROCESSES, "Run a tester.", "roles:tester"),
    Entry("role", _PROCESSES, "Run a role of your own.", "role:command"),
    Entry("recipes", _KNOW, "The recipes that are shipped.", "recipes:command"),
    Entry("contracts", _KNOW, "What a rule can be, with its keys.", "contracts:command"),
    Entry("doctor", _KNOW, "Check this machine.", "doctor:command"),
)


class Program(click.Group):
    """A group whose commands are imported when they are used, and whose unknown ones get the nearest name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the table's order."""
        return [entry.name for entry in TABLE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None if there is no such name."""
        for entry in TABLE:
            if entry.name == cmd_name:
                module, _, attribute = entry.place.partition(":")
                return cast(click.Command, getattr(import_module(f"rolecall.commands.{module}"), attribute))
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the words name. Raises UsageError with the nearest name."""
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not name.startswith("-"):
            hint = nearest(name, self.list_commands(ctx))
            meant = f"Did you mean `rolecall {hint}`?" if hint else "`rolecall --help` lists them."
            raise click.UsageError(f"There is no command {name!r}. {meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by section, from the table alone."""
        for section in dict.fromkeys(entry.section for entry in TABLE):
            with formatter.section(section):
                formatter.write_dl(
                    [(entry.name, entry.summary) for entry in TABLE if entry.section == section]
                )


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="First time: `rolecall doctor`, then `rolecall run --recipe RECIPE --repo .`",
)
@click.version_option(VERSION, message="rolecall %(version)s")
def program() -> None:
    """Large refactors of a git repository: split, run by separate processes, reviewed, tested, delivered as a branch."""

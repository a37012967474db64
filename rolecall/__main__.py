"""`rolecall` and `python -m rolecall`: finds the command, runs it, and turns what went wrong into one line and a code.

Exit codes are those of `schemas.errors.ExitCode`; 130 is an interruption that no command answers itself.
"""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

import click

from rolecall.command_table import program
from schemas.errors import ExitCode, RecipeError, RolecallError

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that lacks a character must not end a command
            stream.reconfigure(errors="replace")
    try:
        code = program.main(args=arguments, prog_name="rolecall", standalone_mode=False)
    except RolecallError as error:
        # A recipe's error ends with what stood there; what to do is a line of its own.
        apart = isinstance(error, RecipeError) and error.suggestion
        _complain(f"{error.message}\n{error.suggestion}" if apart else str(error))
        return int(error.exit_code)
    except click.ClickException as error:
        _complain(error.format_message(), usage_of=getattr(error, "ctx", None))
        return int(ExitCode.USAGE)
    except (click.Abort, KeyboardInterrupt):
        click.echo(err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read us (`| head`) has enough; what Python still holds for them must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    return code if isinstance(code, int) else int(ExitCode.OK)


def _complain(text: str, *, usage_of: click.Context | None = None) -> None:
    click.secho("rolecall: ", fg="red", bold=True, nl=False, err=True)
    click.echo(text, err=True)
    if usage_of is not None:
        click.echo(f"`{usage_of.command_path} --help` shows how it is used.", err=True)


if __name__ == "__main__":
    sys.exit(main())

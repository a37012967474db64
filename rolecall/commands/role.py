"""`rolecall role module:Class`: a role of the user's own."""

from pathlib import Path

import click


@click.command(
    "role",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> int:
    """Serve a role that you wrote: `rolecall role module:Class [the options of every role]`."""
    if not words or words[0] in ("-h", "--help") or words[0].startswith("-"):
        click.echo(
            "Usage: rolecall role MODULE:CLASS [OPTIONS]\n\n"
            "  Serve a subclass of rolecall.Role; recipes name its contract as a rule. MODULE is looked for in the\n"
            "  current folder first. OPTIONS are those of every role: `rolecall executor --help` shows them."
        )
        return 0 if words and words[0] in ("-h", "--help") else 2
    from rolecall.plugin import run_plugin

    return run_plugin(words[0], Path.cwd(), list(words[1:]))

"""`rolecall supervisor`, `planner`, `executor`, `reviewer`, `tester`: the same as `python -m <role>`, options and all."""

from importlib import import_module

import click

_PASSED_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


def _role(name: str) -> click.Command:
    # Everything after the name is the role's own, `--help` and its exit code too.
    @click.command(name, context_settings=_PASSED_ON, add_help_option=False)
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def command(words: tuple[str, ...]) -> int:
        from bus.program import run_role

        module = import_module(f"{name}.__main__")
        try:
            # The supervisor has a main of its own; the others are built the same way.
            own_main = getattr(module, "main", None)
            return int(own_main(list(words)) if own_main else run_role(name, module.build, list(words)))
        except SystemExit as end:  # argparse's way out, for --help and usage
            return int(end.code or 0)

    return command


supervisor = _role("supervisor")
planner = _role("planner")
executor = _role("executor")
reviewer = _role("reviewer")
tester = _role("tester")

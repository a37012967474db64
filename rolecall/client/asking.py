"""The question before a run: what is about to happen, in a few lines, and whether to go on."""

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rolecall.client import terminal
from rolecall.client.order import Order
from rolecall.client.phrases import amount, listed, printable
from schemas.scope import Scope


def show(order: Order, console: Console) -> None:
    """Print the summary of an order."""
    terminal.show(console, _summary(order))


def confirmed(question: str = "Start?") -> bool:
    """Ask; yes is the default, since the summary was just read."""
    return click.confirm(question, default=True)


def _summary(order: Order) -> Table:
    request, recipe = order.request, order.recipe
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    rules = ", ".join(f"{rule.id} ({rule.contract.split('@')[0]})" for rule in recipe.rules)
    table.add_row(
        "recipe", Text.assemble((recipe.recipe, "bold"), f", {amount(len(recipe.rules), 'rule')}: {rules}")
    )
    table.add_row(
        "on", f"{printable(request.repository)} at {printable(request.base_ref)} ({request.base[:12]})"
    )
    table.add_row("scope", f"{amount(order.files_in_scope, 'file')}{_scope(recipe.scope, request.scope)}")
    table.add_row("tests", _tests(order))
    table.add_row("branch", Text(printable(request.branch), style="cyan"))
    if request.allow:
        table.add_row("allowed", ", ".join(request.allow))
    if request.left_out:
        left = f"{amount(len(request.left_out), 'changed file')} that you have not committed: {listed(request.left_out)}"
        table.add_row("left out", Text(left, style="yellow"))
    table.add_row("id", order.task)
    return table


def _scope(*scopes: Scope) -> str:
    parts = []
    for scope in scopes:
        if scope.include != ("**",):
            parts.append(f"in {', '.join(map(printable, scope.include))}")
        if scope.exclude:
            parts.append(f"not in {', '.join(map(printable, scope.exclude))}")
    return f": {'; '.join(parts)}" if parts else ""


def _tests(order: Order) -> Text:
    test = order.request.test
    if test is None:
        option = "--no-tests" if order.request.no_tests else "--allow-untested"
        return Text(f"none: what lands is not tested ({option})", style="yellow")
    text = Text(printable(" ".join(test.command)), style="bold")
    text.append(f"  (from {printable(test.found_in)}", style="dim")
    return text.append(
        f"; environment {printable(test.environment)})" if test.environment else ")", style="dim"
    )

"""The report on a terminal: the outcome first, then what landed and its proof, what did not, the cost, what to do next."""

from collections.abc import Iterator

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rolecall.client import story
from rolecall.client.phrases import amount, listed, one_line, printable
from schemas.errors import ExitCode
from schemas.report import Report, RuleReport
from schemas.words import Severity, TaskStatus, Verdict

MARKS = {"landed": ("✔", "green"), "unlanded": ("✘", "red"), "unchanged": ("·", "dim")}
_RISKS_NAMED = 5


def render(report: Report, program: story.Program | None = None) -> RenderableType:
    """The whole report."""
    return Stack(*_blocks(report, program))


def _blocks(report: Report, program: story.Program | None) -> Iterator[RenderableType]:
    yield _headline(report)
    yield Padding(_where(report), (0, 0, 1, 2))
    if report.rules:
        yield Padding(_rules(report), (0, 0, 1, 2))
    yield _section("Tests", _tests(report))
    yield _section("Did not land", _unlanded(report), style="red")
    yield _section("Left as it was", _residue(report))
    yield _section("Worth a look", _risks(report), style="yellow")
    yield _section("Cost", [Text(story.cost(report))])
    yield _section("Next", _next(report, program))


def _headline(report: Report) -> Text:
    mark, style = {
        ExitCode.OK: ("✔", "bold green"),
        ExitCode.PARTLY_LANDED: ("◐", "bold yellow"),
        ExitCode.CANCELED: ("■", "bold yellow"),
    }.get(story.exit_code(report), ("✘", "bold red"))
    if not report.status.is_final:
        mark, style = "…", "bold"
    text = Text.assemble((f"{mark} {story.headline(report)}", style))
    text.append(f"  {printable(report.recipe)} on {printable(report.repository)}")
    took = story.took(report)
    return text.append(f", {took}" if took else "", style="dim")


def _where(report: Report) -> Text:
    lines: list[Text] = []
    if report.landed:
        lines.append(Text(story.change_size(report)))
        branch = Text.assemble("branch ", (printable(report.branch), "bold cyan"), f" at {report.head[:12]}")
        state = " in your repository" if report.delivered else " in the hub, not delivered yet"
        lines.append(branch.append(state, style="" if report.delivered else "yellow"))
    base = f"base {report.base[:12]}" + (f" ({printable(report.base_ref)})" if report.base_ref else "")
    lines.append(Text(f"{base} · id {report.task}", style="dim"))
    if report.follows:
        lines.append(
            Text(
                f"done again because {printable(report.base_ref)} moved; first {report.follows}", style="dim"
            )
        )
    return Text("\n").join(lines)


def _rules(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", width=1)
    table.add_column("Rule", overflow="fold")
    table.add_column("Commit", no_wrap=True)
    for name in ("Sites", "Files", "Lines"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("Proof", overflow="fold")
    table.add_column("Tests", overflow="fold")
    for rule in report.rules:
        table.add_row(*_rule(report, rule))
    return table


def _rule(report: Report, rule: RuleReport) -> tuple[Text, ...]:
    mark, style = MARKS.get(rule.status, ("…", ""))
    head = (Text(mark, style=style), Text(printable(rule.rule)))
    if rule.status != "landed":
        told = one_line(rule.reason, 80) or rule.status
        return (
            *head,
            Text("-", style="dim"),
            *(Text("-", style="dim"),) * 3,
            Text(told, style="dim"),
            Text(),
        )
    tested = Text(story.tests(report, rule))
    if rule.tested is not None and rule.tested.verdict is not Verdict.PASS:
        tested.stylize("yellow")
    return (
        *head,
        Text((rule.commit or "")[:12], style="cyan"),
        Text(f"{rule.sites:,}"),
        Text(f"{rule.files:,}"),
        Text(f"+{rule.added:,} -{rule.removed:,}"),
        Text(story.proof(rule)),
        tested,
    )


def _tests(report: Report) -> list[Text]:
    lines: list[Text] = []
    if report.test_command:
        lines.append(Text(printable(" ".join(report.test_command)), style="bold"))
    if report.baseline is not None or report.test_command:
        lines.append(Text(story.baseline(report)))
    if report.untested:
        option = "--no-tests" if report.no_tests else "--allow-untested"
        lines.append(Text(f"What landed was not tested ({option}).", style="bold yellow"))
    flaky = sorted({name for rule in report.rules if rule.tested for name in rule.tested.flaky})
    if flaky:
        lines.append(Text(f"Failed once and passed again: {listed(flaky)}", style="yellow"))
    return lines


def _unlanded(report: Report) -> list[Text]:
    lines = []
    for group in story.unlanded(report):
        line = Text.assemble((printable(group.rule), "bold"), f"  {group.reason}")
        if group.places:
            line.append(f"\n  {amount(group.count, 'place')}: {story.places_named(group)}", style="dim")
        lines.append(line)
    if report.status in (TaskStatus.FAILED, TaskStatus.REJECTED) and not lines and report.reason:
        lines.append(Text(one_line(report.reason, 600)))
    return lines


def _residue(report: Report) -> list[Text]:
    groups = story.residue(report)
    lines = [
        Text.assemble(
            (f"{group.count:>4} x ", "bold"),
            f"{printable(group.rule)}: {group.reason}",
            (f"\n       {story.places_named(group)}", "dim"),
        )
        for group in groups[: story.REASONS_NAMED]
    ]
    if len(groups) > story.REASONS_NAMED:
        rest = sum(group.count for group in groups[story.REASONS_NAMED :])
        lines.append(Text(f"and {amount(rest, 'more place')}; --json lists them", style="dim"))
    if report.left_out:
        left = listed(report.left_out)
        lines.append(Text(f"Changes in your working tree that are not committed took no part: {left}"))
    return lines


def _risks(report: Report) -> list[Text]:
    found = [
        (rule.rule, risk)
        for rule in report.rules
        for risk in (*rule.risks, *(rule.tested.risks if rule.tested else ()))
        if risk.severity is not Severity.INFO
    ]
    lines = [
        Text(
            f"{printable(rule)}: {one_line(risk.text)}" + (f" ({printable(risk.path)})" if risk.path else "")
        )
        for rule, risk in dict.fromkeys(found)
    ]
    more = len(lines) - _RISKS_NAMED
    return lines[:_RISKS_NAMED] + ([Text(f"and {more} more", style="dim")] if more > 0 else [])


def _next(report: Report, program: story.Program | None) -> list[Text]:
    commands = story.next_commands(report, program)
    width = max(len(command) for command, _ in commands)
    return [
        Text.assemble((f"{printable(command):<{width}}", "cyan"), f"  {what}") for command, what in commands
    ]


def _section(name: str, lines: list[Text], style: str = "") -> RenderableType:
    if not lines:
        return Text("", end="")
    body = Padding(Text("\n").join(lines), (0, 0, 1, 2))
    return Stack(Text(name, style=f"bold {style}".strip()), body)

"""The report as Markdown, for a pull request's description or a ticket."""

from collections.abc import Iterator

from rolecall.client import story
from rolecall.client.phrases import amount, printable
from schemas.report import Report, RuleReport

_MARKUP = frozenset("\\`*_[]<>|#")


def render(report: Report) -> str:
    """The whole report."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {_plain(story.headline(report))}"
    yield ""
    took = story.took(report)
    yield f"**{_plain(report.recipe)}** on {_code(report.repository)}" + (f", {took}." if took else ".")
    yield ""
    if report.landed:
        yield f"* {story.change_size(report)}"
        yield f"* branch {_code(report.branch)} at {_code(report.head[:12])}"
    yield f"* base {_code(report.base[:12])} ({_plain(report.base_ref)})"
    if report.follows:
        yield f"* done again because {_plain(report.base_ref)} moved; first {_code(report.follows)}"
    yield f"* task {_code(report.task)}"
    if report.rules:
        yield from ("", "## Rules", "")
        yield "| | rule | commit | sites | files | lines | proof | tests |"
        yield "|---|---|---|---:|---:|---:|---|---|"
        for rule in report.rules:
            yield _rule(report, rule)
    if report.test_command or report.baseline is not None:
        yield from ("", "## Tests", "")
        if report.test_command:
            yield f"{_code(' '.join(report.test_command))}  "
        yield _plain(story.baseline(report))
        if report.untested:
            yield "**What landed was not tested.**"
    yield from _groups("## Did not land", story.unlanded(report))
    yield from _groups("## Left as it was", story.residue(report))
    yield from ("", "## Cost", "", story.cost(report))


def _rule(report: Report, rule: RuleReport) -> str:
    if rule.status != "landed":
        return f"| {rule.status} | {_code(rule.rule)} | | | | | {_plain(rule.reason)} | |"
    cells = (
        "landed",
        _code(rule.rule),
        _code((rule.commit or "")[:12]),
        f"{rule.sites:,}",
        f"{rule.files:,}",
        f"+{rule.added:,} -{rule.removed:,}",
        f"{story.proof(rule)} ({_plain(rule.proof_by)})" if rule.proof_by else story.proof(rule),
        _plain(story.tests(report, rule)),
    )
    return f"| {' | '.join(cells)} |"


def _groups(title: str, groups: tuple[story.Group, ...]) -> Iterator[str]:
    if not groups:
        return
    yield from ("", title, "")
    for group in groups:
        where = (
            f": {', '.join(_code(place) for place in group.places[: story.PLACES_NAMED])}"
            if group.places
            else ""
        )
        more = group.count - story.PLACES_NAMED
        rest = f" and {more} more" if group.places and more > 0 else ""
        yield f"* {_code(group.rule)} - {_plain(group.reason)} ({amount(group.count, 'place')}{where}{rest})"


def _code(text: str) -> str:
    """Inline code; a backtick inside would end it, and a bar would end a table's cell."""
    return "`" + _flat(text).replace("`", "'").replace("|", "\\|") + "`"


def _plain(text: str) -> str:
    """Text that Markdown takes for text: nothing in it is a link, markup, or the end of a table's cell."""
    return "".join(f"\\{one}" if one in _MARKUP else one for one in _flat(text))


def _flat(text: str) -> str:
    return " ".join(printable(text).split())

"""What a report says, in sentences: the same words on the terminal and in Markdown."""

import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from rolecall.client.phrases import amount, duration, listed, one_line, printable, short
from schemas.errors import ExitCode
from schemas.handoff import Residue
from schemas.report import Report, RuleReport, Unlanded
from schemas.words import TaskStatus, Verdict

# Places named per reason; the whole list is in the JSON.
PLACES_NAMED = 4
REASONS_NAMED = 6


@dataclass(frozen=True, slots=True)
class Group:
    """Things of one rule that share a reason."""

    rule: str
    reason: str
    count: int
    places: tuple[str, ...]


def exit_code(report: Report) -> ExitCode:
    """How a command that waited for this task ends."""
    match report.status:
        case TaskStatus.COMPLETED:
            return ExitCode.PARTLY_LANDED if report.unlanded else ExitCode.OK
        case TaskStatus.CANCELED:
            return ExitCode.CANCELED
        case TaskStatus.INPUT_REQUIRED:
            return ExitCode.WAITS_FOR_APPROVAL
        case _:
            return ExitCode.FAILED


def headline(report: Report) -> str:
    """The outcome in one sentence."""
    landed = len(report.landed)
    changed = [rule for rule in report.rules if rule.status != "unchanged"]
    match report.status:
        case TaskStatus.COMPLETED if not changed:
            return "Nothing to do: no rule found anything to change"
        case TaskStatus.COMPLETED if landed == len(changed):
            all_of_them = "The rule landed" if landed == 1 else f"All {landed} rules landed"
            left = len(report.unlanded)
            return f"{all_of_them}, without {amount(left, 'refused place')}" if left else all_of_them
        case TaskStatus.COMPLETED:
            return f"Partly landed: {landed} of {amount(len(changed), 'rule')}"
        case TaskStatus.CANCELED:
            return f"Canceled: {landed} of {amount(len(report.rules), 'rule')} had landed"
        case TaskStatus.FAILED:
            return f"Failed: {one_line(report.reason) or 'no reason was recorded'}"
        case TaskStatus.REJECTED:
            return f"Refused: {one_line(report.reason) or 'no reason was recorded'}"
        case _:
            return f"Not over yet ({report.status})"


def took(report: Report) -> str:
    """How long the task took, or empty while it is not over."""
    if report.ended_at is None or not report.accepted_at:
        return ""
    return duration((report.ended_at - report.accepted_at) / 1e6)


def change_size(report: Report) -> str:
    """Files, lines and sites of what landed."""
    files = {change.path for rule in report.landed for change in rule.changed_files}
    added = sum(rule.added for rule in report.landed)
    removed = sum(rule.removed for rule in report.landed)
    sites = sum(rule.sites for rule in report.landed)
    counted = len(files) or sum(rule.files for rule in report.landed)
    return f"{amount(sites, 'site')} in {amount(counted, 'file')}, +{added:,} -{removed:,} lines"


def proof(rule: RuleReport) -> str:
    """How the rule's change was proved, in a few words."""
    match rule.proof:
        case "rerun":
            return "applied again, same tree"
        case "twice":
            return "two runs, same commit"
        case "gates":
            return "gates only"
        case "":
            return "-"
        case other:
            return other


def tests(report: Report, rule: RuleReport) -> str:
    """The test of a rule's commit in a few words."""
    told = rule.tested
    if told is None:
        return "not tested" if report.untested else "by a later commit's test"
    counts = f"{told.passed:,} passed"
    if told.failed:
        counts += f", {told.failed:,} failed"
    match told.verdict:
        case Verdict.PASS:
            return counts if told.passed else "passed"
        case Verdict.FAIL:
            new = f"{amount(len(told.new_failures), 'new failure')}, " if told.new_failures else ""
            return f"{new}{counts}"
        case Verdict.COULD_NOT_RUN:
            return "could not run"
        case Verdict.NOTHING_RAN:
            return "no tests ran"


def baseline(report: Report) -> str:
    """What the tests said of the unchanged repository."""
    told = report.baseline
    if report.no_tests:
        return "No tests were run, neither before nor after any rule (--no-tests)."
    if told is None:
        return "The unchanged repository was not tested."
    match told.verdict:
        case Verdict.PASS:
            old = (
                f"; {amount(told.failed, 'test')} failed there already and {'counts' if told.failed == 1 else 'count'} for nothing"
                if told.failed
                else ""
            )
            return f"The unchanged repository: {told.passed:,} passed in {duration(told.duration_ms / 1000)}{old}."
        case Verdict.FAIL | Verdict.COULD_NOT_RUN:
            return f"The unchanged repository's tests could not be used: {one_line(told.reason) or told.verdict}."
        case Verdict.NOTHING_RAN:
            return (
                f"The repository has no tests that ran{': ' + one_line(told.reason) if told.reason else ''}."
            )


def cost(report: Report) -> str:
    """What it took."""
    parts = [amount(report.actions, "action")]
    extra = [amount(report.retries, "retry", "retries")] if report.retries else []
    extra += [f"{report.set_aside} late or repeated answers set aside"] if report.set_aside else []
    parts[0] += f" in {amount(report.attempts, 'attempt')}" + (f" ({', '.join(extra)})" if extra else "")
    if report.workers:
        parts.append(f"{amount(len(report.workers), 'process', 'processes')}")
    least = "" if report.cost.cpu_is_whole else "at least "
    parts.append(
        f"{duration(report.cost.wall_ms / 1000)} of work, {least}{duration(report.cost.cpu_ms / 1000)} of CPU"
    )
    if report.cost.tokens_in or report.cost.tokens_out:
        parts.append(f"{report.cost.tokens_in + report.cost.tokens_out:,} tokens, ${report.cost.money:.2f}")
    return " · ".join(parts)


def unlanded(report: Report) -> tuple[Group, ...]:
    """What did not land, by rule and reason."""
    return _grouped((one.rule, one.reason, _place(one)) for one in report.unlanded)


def residue(report: Report) -> tuple[Group, ...]:
    """What looks like a site and was left, by rule and reason, most first."""
    return _grouped((rule.rule, one.reason, _spot(one)) for rule in report.rules for one in rule.residue)


@dataclass(frozen=True, slots=True)
class Program:
    """How the user calls us: the word for `rolecall`, and the environment if it is not the one found by default.

    `folder` is where they stand; git commands name the repository when that is elsewhere.
    """

    word: str = "rolecall"
    environment: str = ""
    folder: str = ""

    def line(self, command: str) -> str:
        """A command line of ours as the user types it."""
        return f"{self.word} {command}" + (f" -E {self.environment}" if self.environment else "")

    def git(self, repository: str) -> str:
        """How git is called for this repository from here."""
        if not self.folder or PurePath(self.folder).is_relative_to(repository):
            return "git"
        near = PurePath(repository)
        if near.is_relative_to(self.folder):
            near = near.relative_to(self.folder)
        return f"git -C {shlex.quote(str(near))}"


def next_commands(report: Report, program: Program | None = None) -> tuple[tuple[str, str], ...]:
    """What to type next, and what for."""
    name = short(report.task)
    program = program or Program()
    line = program.line
    found: list[tuple[str, str]] = []
    if report.landed and report.delivered:
        git = program.git(report.repository)
        found.append((f"{git} log --stat {report.base[:12]}..{report.branch}", "read the commits"))
        found.append((f"{git} switch {report.branch}", "stand on the branch"))
    elif report.landed and report.status.is_final:
        found.append((line(f"deliver {name}"), "create the branch in your repository"))
    if report.landed:
        found.append((line(f"diff {name}"), "the whole change; --rule RULE for one, --stat for the list"))
    if report.unlanded or report.status in (TaskStatus.FAILED, TaskStatus.REJECTED):
        found.append((line(f"report {name} --json"), "every reason in full"))
    found.append((line(f"trace {name}"), "who did what, when, and how long it waited"))
    return tuple(found)


def _grouped(things: Iterable[tuple[str, str, str]]) -> tuple[Group, ...]:
    counts: Counter[tuple[str, str]] = Counter()
    places: dict[tuple[str, str], list[str]] = {}
    for rule, reason, place in things:
        key = (rule, one_line(reason))
        counts[key] += 1
        if place:
            places.setdefault(key, []).append(place)
    return tuple(
        Group(rule, reason, count, tuple(places.get((rule, reason), ())))
        for (rule, reason), count in counts.most_common()
    )


def places_named(group: Group) -> str:
    """The first places of a group."""
    return listed(group.places, PLACES_NAMED)


def _place(one: Unlanded) -> str:
    return printable(one.path) if one.path else printable(one.step) if one.step else ""


def _spot(one: Residue) -> str:
    return f"{one.path}:{one.line}" if one.line else one.path

"""A task at one moment on the terminal: its rules with bars, what runs where, and the last sentences."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rolecall.client.phrases import amount, duration, one_line, printable, short
from schemas.report import WorkerLine
from schemas.task import RuleProgress, TaskProgress

_MARKS = {
    "waiting": ("·", "dim"),
    "running": ("▶", "blue"),
    "composing": ("▶", "blue"),
    "composed": ("◆", "blue"),
    "landed": ("✔", "green"),
    "unchanged": ("·", "dim"),
    "unlanded": ("✘", "red"),
}
_BAR_WIDTH = 28
SENTENCES_KEPT = 4
# After this long without a picture the reader is told that nothing comes.
QUIET_S = 15.0


@dataclass
class Seen:
    """What a watcher has seen so far; `news` says what a new picture adds, in sentences."""

    recipe: str = ""
    latest: TaskProgress | None = None
    started_us: int = 0
    heard_us: int = 0
    workers: Sequence[WorkerLine] = ()
    sentences: "deque[str]" = field(default_factory=lambda: deque(maxlen=SENTENCES_KEPT))

    def news(self, picture: TaskProgress, *, at_us: int) -> list[str]:
        """Take a picture in; returns the sentences that it adds."""
        before, self.latest, self.heard_us = self.latest, picture, at_us
        said = []
        if picture.baseline is not None and (before is None or before.baseline is None):
            said.append(f"the unchanged repository's tests: {picture.baseline}")
        old = {rule.rule: rule.status for rule in before.rules} if before else {}
        said += [
            _turn(rule) for rule in picture.rules if _is_turn(old.get(rule.rule, "waiting"), rule.status)
        ]
        if before is None or before.sentence != picture.sentence:
            said.append(picture.sentence)
        said = [one_line(one) for one in said]
        self.sentences.extend(f"{duration((at_us - self.started_us) / 1e6):>8}  {one}" for one in said)
        return said


def render(seen: Seen, *, now_us: int) -> RenderableType:
    """The whole view."""
    picture = seen.latest
    if picture is None:
        return Text(
            f"… waiting for the supervisor, {duration((now_us - seen.started_us) / 1e6)}", style="dim"
        )
    blocks: list[RenderableType] = [_head(seen, picture, now_us)]
    if picture.rules:
        blocks.append(_rules(picture))
    blocks += [Text(line, style="dim") for line in _running(seen)]
    blocks += [Text(), *(Text(line, style="dim") for line in seen.sentences)]
    return Stack(*blocks)


def summary(picture: TaskProgress) -> RenderableType:
    """A picture that nobody watches: for `rolecall status`."""
    head = Text.assemble((short(picture.task), "bold"), f"  {picture.status}")
    if not picture.status.is_final:
        head.append(f", {picture.phase}")
    blocks: list[RenderableType] = [head, Text(one_line(picture.sentence, 500))]
    if picture.waiting_for:
        blocks.append(Text(f"waits for: {', '.join(picture.waiting_for)}", style="yellow"))
    if picture.baseline is not None:
        blocks.append(Text(f"unchanged repository's tests: {picture.baseline}", style="dim"))
    if picture.rules:
        blocks.append(_rules(picture))
    return Stack(*blocks)


def _head(seen: Seen, picture: TaskProgress, now_us: int) -> Text:
    text = Text.assemble((printable(seen.recipe) or "task", "bold"), f"  {short(picture.task)}  ")
    text.append(str(picture.status), style="blue")
    text.append(f"  {duration((now_us - seen.started_us) / 1e6)}", style="dim")
    text.append(f"\n{one_line(picture.sentence)}")
    if picture.waiting_for:
        text.append(
            f"\nwaits for: {', '.join(picture.waiting_for)}; `rolecall ps` shows who is there", style="yellow"
        )
    quiet_s = (now_us - seen.heard_us) / 1e6
    if quiet_s > QUIET_S:
        text.append(f"\nno news for {duration(quiet_s)}: is the supervisor running?", style="yellow")
    return text.append("\n")


def _rules(picture: TaskProgress) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for _ in range(6):
        table.add_column(overflow="fold")
    for rule in picture.rules:
        mark, style = _MARKS.get(rule.status, ("?", ""))
        table.add_row(
            Text(mark, style=style),
            Text(printable(rule.rule)),
            _bar(rule),
            Text(f"{rule.reviewed}/{rule.steps}" if rule.steps else "", style="dim"),
            Text(amount(rule.files, "file") if rule.files else "", style="dim"),
            Text(_state(rule), style=style),
        )
    return table


def _bar(rule: RuleProgress) -> RenderableType:
    over = rule.status in ("landed", "unchanged", "composed")
    total = max(rule.steps, 1)
    return ProgressBar(
        total=total,
        completed=total if over else rule.reviewed,
        width=_BAR_WIDTH,
        complete_style="green" if rule.status == "landed" else "blue",
        finished_style="green"
        if rule.status == "landed"
        else "dim"
        if rule.status == "unchanged"
        else "blue",
    )


def _state(rule: RuleProgress) -> str:
    match rule.status:
        case "landed":
            return f"landed {(rule.commit or '')[:10]}"
        case "composed":
            return "waits for its tests"
        case "unlanded":
            return f"not landed: {one_line(rule.reason, 80)}"
        case "unchanged":
            return one_line(rule.reason, 60) or "nothing to change"
        case status:
            return status


def _running(seen: Seen) -> list[str]:
    busy = [(line, one) for line in seen.workers for one in line.running]
    return [f"  {printable(line.role)} {line.pid}: {one_line(one, 100)}" for line, one in busy]


def _is_turn(old: str, new: str) -> bool:
    return old != new and new in ("landed", "unlanded", "unchanged")


def _turn(rule: RuleProgress) -> str:
    return f"{rule.rule}: {_state(rule)}"

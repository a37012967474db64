"""Attending a task: watching it to its end, then its report and its branch; how `run` and `watch` end."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bus.settings import Settings
from rolecall.client import report_text, story
from rolecall.client.cancelling import ask_cancel
from rolecall.client.delivery import deliver
from rolecall.client.following import Feed
from rolecall.client.line import Line, connected
from rolecall.client.moving_base import Moved, moved_since, remark
from rolecall.client.phrases import short
from rolecall.client.progress_view import summary
from rolecall.client.reading import Glimpse, chosen, opened_hub, opened_journal, read_report
from rolecall.client.telling_delivery import say_delivered
from rolecall.client.terminal import console as stdout_console
from rolecall.client.terminal import echo_json, program_of, show
from rolecall.client.watching import Interrupts, StoppedWatchingError, watch
from schemas.errors import ExitCode, RolecallError, SettingsError
from schemas.report import Report
from schemas.task import TaskProgress
from schemas.words import TaskStatus
from workspace.source import Base, Source, open_source

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Attendance:
    """What attending needs. `source` is the repository to deliver to; None delivers nothing. `base` is what the
    task started from, where that is known before its report.

    `is_served` says whether anything still works on the task. With `as_json` the console is not standard output,
    which gets the report as data. With `follows` nothing is delivered on a base that is
    out of date: that is an OutdatedError, and the caller's to answer.
    """

    task: str
    recipe: str
    settings: Settings
    line: Line | None
    console: Console
    source: Source | None
    branch: str
    base: Base | None
    is_served: Callable[[], bool]
    as_json: bool = False
    follows: bool = False


class OutdatedError(Exception):
    """The task is over, and the branch that it started from stands elsewhere now; nothing was delivered."""

    def __init__(self, moved: Moved) -> None:
        super().__init__(moved.sentence())
        self.moved = moved


async def attend(settings: Settings, task: str | None, *, deliver: bool | None, as_json: bool = False) -> int:
    """`rolecall watch`: returns the exit code. Ctrl-C leaves the task alone.

    `deliver=None` delivers if the user stands at the repository.
    """
    with opened_journal(settings) as reader:
        full = chosen(reader, task)
        status = reader.progress(full).status
        line_of_task = next(one for one in reader.tasks() if one.task == full)
    if not status.is_final and settings.broker_url is None:
        raise SettingsError(
            f"Task {short(full)} is not over, and nothing runs in environment {settings.environment!r} now.",
            suggestion="`rolecall up` takes it up again.",
        )
    repository = Path(line_of_task.repository)
    wanted = Path.cwd().is_relative_to(repository) if deliver is None else deliver
    source = open_source(repository) if wanted else None
    async with _line(settings, wanted=not status.is_final) as line, _feed(line, full) as feed:
        attendance = Attendance(
            task=full,
            recipe=line_of_task.recipe,
            settings=settings,
            line=line,
            console=stdout_console(sys.stderr if as_json else sys.stdout),
            source=source,
            branch="",
            base=None,
            is_served=lambda: True,
            as_json=as_json,
        )
        return await to_the_end(attendance, feed, Interrupts(_nothing), left=INTERRUPTED)


async def to_the_end(attendance: Attendance, feed: Feed | None, interrupts: Interrupts, *, left: int) -> int:
    """Watch, report, deliver; returns the exit code, `left` if the user went away. Raises OutdatedError."""
    glimpse = Glimpse(attendance.settings)
    try:
        picture = await watch(
            attendance.task,
            feed,
            glimpse,
            recipe=attendance.recipe,
            console=attendance.console,
            interrupts=interrupts,
            is_served=attendance.is_served,
        )
    except StoppedWatchingError:
        name = short(attendance.task)
        attendance.console.print(f"Left task {name}; `rolecall status {name}` tells how it goes on.")
        return left
    finally:
        glimpse.close()
    return await _tell(attendance, picture)


def canceling(line: Line, task: str, console: Console) -> Interrupts:
    """What Ctrl-C does in `run`: once asks for the end of the task, twice stops waiting for it."""

    async def ask() -> None:
        console.print("Canceling; what landed is kept. Ctrl-C again stops now.", style="yellow")
        await ask_cancel(line, task, "canceled with Ctrl-C")

    return Interrupts(ask, _nothing)


async def _nothing() -> None:
    """The answer that only ends the watching."""


async def _tell(attendance: Attendance, picture: TaskProgress) -> int:
    settings = attendance.settings
    try:
        with opened_journal(settings) as reader:
            report = read_report(settings, reader, attendance.task)
    except SettingsError:  # the supervisor, and with it the journal, is on another machine
        return await _tell_picture(attendance, picture)
    if report.status is TaskStatus.COMPLETED and report.landed and report.delivered is None:
        base = Base(report.base, report.base_ref)
        branch = await _delivered(attendance, base, report.head, report.branch)
        report = report.model_copy(update={"delivered": branch})
    if attendance.as_json:
        echo_json(report)
    else:
        show(attendance.console, report_text.render(report, program_of(settings)))
    return story.exit_code(report)


async def _tell_picture(attendance: Attendance, picture: TaskProgress) -> int:
    if attendance.as_json:
        echo_json(picture)
    show(attendance.console, summary(picture))
    landed = [rule for rule in picture.rules if rule.status == "landed"]
    if picture.status is TaskStatus.COMPLETED and landed and picture.head and attendance.branch:
        branch = await _delivered(attendance, attendance.base, picture.head, attendance.branch)
        if branch:
            attendance.console.print(f"Created {branch} at {picture.head[:12]}.")
    unlanded = tuple(rule for rule in picture.rules if rule.status == "unlanded")
    bare = Report(
        task=picture.task, status=picture.status, reason=picture.sentence, recipe=attendance.recipe,
        repository="", base="", base_ref="", head=picture.head or "", branch=attendance.branch,
    )  # fmt: skip
    code = story.exit_code(bare)
    return ExitCode.PARTLY_LANDED if code is ExitCode.OK and unlanded else code


async def _delivered(attendance: Attendance, base: Base | None, commit: str, branch: str) -> str | None:
    """Deliver where that was wanted; a refusal is told, and the result stays in the hub. Raises OutdatedError."""
    if attendance.source is None:
        return None
    moved = moved_since(attendance.source, base) if base is not None else None
    if moved is not None and attendance.follows:
        raise OutdatedError(moved)
    if moved is not None:
        attendance.console.print(f"! {remark(moved)}", style="yellow")
    try:
        with opened_hub(attendance.settings) as hub:
            delivered = deliver(attendance.source, hub, commit, branch)
        if attendance.line is not None:
            await say_delivered(attendance.line, attendance.task, delivered, str(attendance.source.path))
    except RolecallError as error:
        attendance.console.print(f"! {error}", style="yellow")
        return None
    return delivered.branch


@asynccontextmanager
async def _line(settings: Settings, *, wanted: bool) -> AsyncIterator[Line | None]:
    """A line if there is a broker to be had: without it the journal alone is followed."""
    if not wanted or settings.broker_url is None:
        yield None
        return
    async with connected(settings) as line:
        yield line


@asynccontextmanager
async def _feed(line: Line | None, task: str) -> AsyncIterator[Feed | None]:
    if line is None:
        yield None
        return
    async with Feed(line.bus, task) as feed:
        yield feed

"""Tables of tasks, processes and parked messages."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from rolecall.client.phrases import duration, moment, one_line, printable, short, span, work
from schemas.report import DeadLine, TaskLine, WorkerLine
from schemas.words import TaskStatus

_TASK_STYLES = {
    TaskStatus.COMPLETED: "green",
    TaskStatus.FAILED: "red",
    TaskStatus.REJECTED: "red",
    TaskStatus.CANCELED: "yellow",
    TaskStatus.INPUT_REQUIRED: "yellow",
}
_WORKER_STYLES = {
    "ready": "green",
    "suspect": "yellow",
    "resting": "yellow",
    "draining": "yellow",
    "lost": "red",
}


def tasks_table(lines: Sequence[TaskLine], *, now_us: int) -> Table:
    """Tasks, one a row."""
    table = _table("id", "when", "took", "state", "recipe", "repository", "by", "said")
    for line in lines:
        end = line.ended_at or (None if line.status.is_final else now_us)
        table.add_row(
            Text(short(line.task), style="bold"),
            Text(moment(line.accepted_at, now_us=now_us)),
            Text(span(line.accepted_at, end) if end else ""),
            Text(str(line.status), style=_TASK_STYLES.get(line.status, "blue")),
            Text(printable(line.recipe)),
            Text(printable(line.repository)),
            Text(printable(line.submitted_by)),
            Text(one_line(line.reason, 90), style="dim"),
        )
    return table


def workers_table(lines: Sequence[WorkerLine], *, now_us: int) -> Table:
    """Processes of the roll call, one a row; several actions of one process take a line each."""
    table = _table("role", "instance", "host", "pid", "state", "heartbeat", "slots", "runs")
    for line in lines:
        table.add_row(
            Text(printable(line.role), style="bold"),
            Text(printable(line.instance), style="dim"),
            Text(printable(line.host)),
            Text(str(line.pid)),
            Text(line.state, style=_WORKER_STYLES.get(line.state, "")),
            Text(f"{duration((now_us - line.heartbeat_at) / 1e6)} ago"),
            Text(f"{len(line.running)}/{line.slots}" if line.slots else ""),
            Text(_runs(line), style="" if line.running else "dim"),
        )
    return table


def _runs(line: WorkerLine) -> str:
    if line.role == "supervisor":
        return "keeps the journal"
    return "\n".join(work(one) for one in line.running) or "nothing"


def dead_table(lines: Sequence[DeadLine], *, now_us: int) -> Table:
    """Parked messages, one a row."""
    table = _table("id", "when", "kind", "task", "queue", "bytes", "reason")
    for line in lines:
        table.add_row(
            Text(printable(line.id), style="bold"),
            Text(moment(line.received_at, now_us=now_us)),
            Text(printable(line.kind)),
            Text(short(printable(line.task))),
            Text(printable(line.queue), style="dim"),
            Text(f"{line.size_bytes:,}"),
            Text(one_line(line.reason, 200)),
        )
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in names:
        table.add_column(name, overflow="fold")
    return table

"""The waterfall of one task: a bar per attempt over time, who ran it, how long it waited, how it ended.

░ waits for a process    ▒ accepted, not started    █ runs
"""

from collections.abc import Iterator

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rolecall.client.phrases import amount, duration, one_line, printable
from schemas.report import Trace, TraceAction, TraceAttempt, TraceMessage
from schemas.words import Verdict

WAITS, HELD, RUNS = "░", "▒", "█"
_GOOD = {"done", "no_change"}
# Narrower bars say nothing; wider ones push the reasons out of sight.
BAR_WIDTH = 44


def render(trace: Trace, *, now_us: int, messages: bool = False, width: int = BAR_WIDTH) -> RenderableType:
    """The whole trace; `now_us` ends the bars of what still runs."""
    blocks: list[RenderableType] = [_head(trace, now_us), Text(), _waterfall(trace, now_us, width)]
    blocks += [Text(), Text("What happened", style="bold"), _moments(trace)]
    if messages:
        blocks += [Text(), Text(f"Messages ({len(trace.messages):,})", style="bold"), _messages(trace)]
    return Stack(*blocks)


def _head(trace: Trace, now_us: int) -> Text:
    end = trace.ended_at or now_us
    attempts = [one for action in trace.actions for one in action.attempts]
    text = Text.assemble(
        ("Task ", "bold"),
        (trace.task, "bold"),
        f"  {trace.status}, {duration((end - trace.accepted_at) / 1e6)}: ",
        f"{amount(len(trace.actions), 'action')}, {amount(len(attempts), 'attempt')}, ",
        f"{amount(len(trace.messages), 'message')}",
    )
    waits = sorted(waited for one in attempts if (waited := _waited(one)) is not None)
    if waits:
        text.append(
            f"; waited {duration(waits[len(waits) // 2])} in the middle, {duration(waits[-1])} at most"
        )
    return text.append(f"\n{WAITS} waits for a process  {HELD} accepted  {RUNS} runs", style="dim")


def _waterfall(trace: Trace, now_us: int, width: int) -> Table:
    start = trace.accepted_at
    end = max(
        trace.ended_at or now_us, *(_end(one, now_us) for a in trace.actions for one in a.attempts), start + 1
    )
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("at", justify="right", no_wrap=True)
    table.add_column("action", overflow="fold", max_width=46)
    table.add_column(f"0 … {duration((end - start) / 1e6)}", no_wrap=True, min_width=width)
    table.add_column("ran by", overflow="fold", max_width=26)
    table.add_column("waited", justify="right", no_wrap=True)
    table.add_column("ran", justify="right", no_wrap=True)
    table.add_column("ended", overflow="fold")
    for action in sorted(trace.actions, key=lambda one: one.opened_at):
        for number, attempt in enumerate(action.attempts or (TraceAttempt(attempt=0),)):
            table.add_row(
                *_row(action, attempt, first=number == 0, start=start, end=end, now_us=now_us, width=width)
            )
    return table


def _row(
    action: TraceAction, attempt: TraceAttempt, *, first: bool, start: int, end: int, now_us: int, width: int
) -> Iterator[Text]:
    at = attempt.dispatched_at or action.opened_at
    yield Text(f"{(at - start) / 1e6:.2f}", style="dim")
    if first:
        contract = action.contract.split("@")[0]
        names = dict.fromkeys((action.kind, action.step))
        yield Text.assemble(
            printable(" ".join(names)), (f" {contract}" if action.kind == "change" else "", "dim")
        )
    else:
        yield Text(f"  again, attempt {attempt.attempt}", style="yellow")
    yield _bar(attempt, start=start, end=end, now_us=now_us, width=width, good=_is_good(action, attempt))
    yield Text(printable(attempt.instance) or "-", style="dim")
    waited, ran = _waited(attempt), _ran(attempt, now_us)
    yield Text(duration(waited) if waited is not None else "-")
    yield Text(duration(ran) if ran is not None else "-")
    yield _ended(action, attempt)


def _bar(attempt: TraceAttempt, *, start: int, end: int, now_us: int, width: int, good: bool) -> Text:
    def column(at: int) -> int:
        return min(width, max(0, round((at - start) / (end - start) * width)))

    if attempt.dispatched_at is None:
        return Text("")
    stop = max(_end(attempt, now_us), attempt.dispatched_at)
    accepted = attempt.accepted_at or stop
    began = attempt.started_at or accepted
    marks = [column(one) for one in (attempt.dispatched_at, accepted, max(began, accepted), stop)]
    # Whatever ran is seen, even if it took no time at this scale.
    marks[0] = min(marks[0], width - 1)
    marks[3] = max(marks[3], marks[0] + 1)
    marks[1], marks[2] = (min(max(one, marks[0]), marks[3]) for one in marks[1:3])
    if attempt.accepted_at and marks[2] == marks[3]:
        marks[2] = marks[3] - 1
        marks[1] = min(marks[1], marks[2])
    style = "green" if good else "red"
    if not attempt.outcome:
        style = "blue"
    return Text.assemble(
        " " * marks[0],
        (WAITS * (marks[1] - marks[0]), "dim"),
        (HELD * (marks[2] - marks[1]), "dim"),
        (RUNS * (marks[3] - marks[2]), style),
    )


def _ended(action: TraceAction, attempt: TraceAttempt) -> Text:
    if not attempt.outcome:
        return Text("runs" if attempt.accepted_at else "waits", style="blue")
    good = _is_good(action, attempt)
    text = Text(attempt.outcome, style="" if good else "red")
    if action.verdict is not None and attempt.outcome == action.outcome:
        text.append(f" · {action.verdict}", style="green" if action.verdict is Verdict.PASS else "red")
    if attempt.reason and not good:
        text.append(f" · {one_line(attempt.reason, 120)}", style="dim")
    return text


def _moments(trace: Trace) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_header=False)
    table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for one in trace.moments:
        table.add_row(f"{(one.at - trace.accepted_at) / 1e6:.2f}", Text(one_line(one.text, 400)))
    return table


def _messages(trace: Trace) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for name in ("at", "took"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("kind", "from", "to", "message", "because of", "note"):
        table.add_column(name, overflow="fold")
    for one in trace.messages:
        table.add_row(*_message(one, trace.accepted_at))
    return table


def _message(one: TraceMessage, start: int) -> tuple[Text, ...]:
    at = one.sent_at or one.received_at
    took = one.received_at - one.sent_at if one.received_at and one.sent_at else None
    return (
        Text(f"{(at - start) / 1e6:.3f}" if at else "not sent", style="dim"),
        Text(f"{took / 1e3:.1f} ms" if took is not None and took >= 0 else "-", style="dim"),
        Text(one.kind + (f" #{one.attempt}" if one.attempt else "")),
        Text(printable(one.sender)),
        Text(printable(one.receiver)),
        Text(one.message_id[-12:], style="dim"),
        Text((one.causation_id or "")[-12:], style="dim"),
        Text(one_line(one.note, 160)),
    )


def _is_good(action: TraceAction, attempt: TraceAttempt) -> bool:
    bad = action.verdict not in (None, Verdict.PASS) and attempt.outcome == action.outcome
    return attempt.outcome in _GOOD and not bad


def _end(attempt: TraceAttempt, now_us: int) -> int:
    return attempt.ended_at or (now_us if not attempt.outcome else attempt.accepted_at or now_us)


def _waited(attempt: TraceAttempt) -> float | None:
    if attempt.dispatched_at is None or attempt.accepted_at is None:
        return None
    return max(0, attempt.accepted_at - attempt.dispatched_at) / 1e6


def _ran(attempt: TraceAttempt, now_us: int) -> float | None:
    if attempt.accepted_at is None:
        return None
    began = attempt.started_at or attempt.accepted_at
    return max(0, _end(attempt, now_us) - began) / 1e6

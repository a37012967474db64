"""A report and a trace with a bit of everything, for tests of how they are told."""

from typing import Any

from schemas.handoff import Cost, FileChange, Residue, RiskNote
from schemas.report import (
    Moment,
    Report,
    RuleReport,
    TestsTold,
    Trace,
    TraceAction,
    TraceAttempt,
    TraceMessage,
    Unlanded,
)
from schemas.words import ChangeKind, Severity, TaskStatus, Verdict

TASK = "0193fa2b-1c3d-7abc-8def-0123456789ab"
SECOND = 1_000_000
START = 1_700_000_000 * SECOND


def landed_rule(**changes: Any) -> RuleReport:
    fields: dict[str, Any] = {
        "rule": "utcnow",
        "contract": "rewrite.pattern@1",
        "status": "landed",
        "commit": "c" * 40,
        "steps": 3,
        "sites": 12,
        "files": 2,
        "added": 14,
        "removed": 12,
        "engines": ("ast-grep 0.51.0",),
        "proof": "rerun",
        "proof_by": "3 reviews by reviewer-1",
        "tested": TestsTold(verdict=Verdict.PASS, passed=1665, failed=1, duration_ms=8000),
        "changed_files": (
            FileChange(path="a.py", change=ChangeKind.MODIFIED, added=7, removed=6),
            FileChange(path="b.py", change=ChangeKind.MODIFIED, added=7, removed=6),
        ),
    }
    return RuleReport(**{**fields, **changes})


def full_report(**changes: Any) -> Report:
    """One rule landed, one had nothing to do, one did not land; residue, risks and files that were left out."""
    fields: dict[str, Any] = {
        "task": TASK,
        "status": TaskStatus.COMPLETED,
        "reason": "2 of 3 rules",
        "recipe": "modern",
        "repository": "/home/ada/arrow",
        "base": "a" * 40,
        "base_ref": "main",
        "head": "d" * 40,
        "branch": "rolecall/modern-456789ab",
        "delivered": "rolecall/modern-456789ab",
        "accepted_at": START,
        "ended_at": START + 95 * SECOND,
        "rules": (
            landed_rule(
                residue=tuple(
                    Residue(path=f"docs/{n}.rst", line=n, reason="only looks like it") for n in range(1, 7)
                ),
                residue_count=6,
                risks=(RiskNote(severity=Severity.WARNING, text="a comment was | moved", path="a.py"),),
            ),
            RuleReport(rule="idle", contract="text.replace@1", status="unchanged", reason="no site"),
            RuleReport(rule="bold", contract="lint.fix@1", status="unlanded", reason="2 tests fail with it"),
        ),
        "baseline": TestsTold(verdict=Verdict.PASS, passed=1665, failed=1, duration_ms=8000),
        "test_command": ("python", "-m", "pytest", "-q"),
        "unlanded": (Unlanded(rule="bold", reason="2 tests fail with it"),),
        "left_out": ("notes.txt",),
        "actions": 20,
        "attempts": 22,
        "retries": 2,
        "workers": ("executor-1", "reviewer-1"),
        "cost": Cost(wall_ms=61_000, cpu_ms=42_000),
    }
    return Report(**{**fields, **changes})


def full_trace() -> Trace:
    """Three actions: one done at once, one lost and done again elsewhere, one refused by its review."""
    return Trace(
        task=TASK,
        status=TaskStatus.COMPLETED,
        accepted_at=START,
        ended_at=START + 40 * SECOND,
        actions=(
            action("plan", "plan.draft@1", attempt(1, "planner-1", 0, 1, 1, 3)),
            action(
                "change",
                "rewrite.pattern@1",
                attempt(1, "executor-1", 3, 4, 4, 20, outcome="lost", reason="three heartbeats missed"),
                attempt(2, "executor-2", 20, 30, 30, 32),
            ),
            action(
                "review", "review.change@1", attempt(1, "reviewer-1", 33, 34, 35, 39), verdict=Verdict.FAIL
            ),
        ),
        messages=(
            TraceMessage(
                message_id="0193fa2b-0000-7000-8000-00000000aaaa",
                direction="in",
                kind="task.submitted",
                sender="client c-1",
                receiver="supervisor",
                sent_at=START - SECOND,
                received_at=START,
            ),
            TraceMessage(
                message_id="0193fa2b-0000-7000-8000-00000000bbbb",
                causation_id="0193fa2b-0000-7000-8000-00000000aaaa",
                direction="out",
                kind="action.requested",
                sender="supervisor",
                receiver="planner",
                sent_at=START + 1500,
                attempt=1,
            ),
        ),
        moments=(Moment(at=START, what="task_accepted", text="modern on arrow: 3 rules."),),
    )


def action(kind: str, contract: str, *attempts: TraceAttempt, verdict: Verdict | None = None) -> TraceAction:
    return TraceAction(
        action_id=f"{kind}-id",
        kind=kind,
        step=f"{kind}/0",
        contract=contract,
        pool="p",
        opened_at=attempts[0].dispatched_at or START,
        ended_at=attempts[-1].ended_at,
        outcome=attempts[-1].outcome,
        verdict=verdict,
        attempts=attempts,
    )


def attempt(
    number: int,
    instance: str,
    sent: int,
    accepted: int,
    began: int,
    ended: int,
    outcome: str = "done",
    reason: str = "",
) -> TraceAttempt:
    return TraceAttempt(
        attempt=number,
        instance=instance,
        dispatched_at=START + sent * SECOND,
        accepted_at=START + accepted * SECOND,
        started_at=START + began * SECOND,
        ended_at=START + ended * SECOND,
        outcome=outcome,
        reason=reason,
    )

"""The change under review, with the bytes before and after of every path, and what a gate says about it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.handoff import Evidence, Finding
from schemas.scope import Reach
from schemas.words import ChangeKind, Severity, Verdict
from workspace.entries import SUBMODULE_MODE
from workspace.hub import Hub, PathChange

# A gate names this many places; its counts tell how many there are.
MAX_FINDINGS = 50


@dataclass(frozen=True, slots=True)
class Change:
    """One path: what stood there and what stands there now; None where there is no blob (added, deleted, submodule)."""

    path: str
    kind: ChangeKind
    old_mode: str | None
    new_mode: str | None
    before: bytes | None
    after: bytes | None

    @property
    def is_edit(self) -> bool:
        """True for a regular file that was one before and has other bytes now."""
        return _is_file(self.old_mode) and _is_file(self.new_mode) and self.before != self.after

    @property
    def has_text(self) -> bool:
        """True if the new content is a regular file's (not a link's target, not a submodule)."""
        return _is_file(self.new_mode) and self.after is not None


@dataclass(frozen=True, slots=True)
class Case:
    """One step's claim: `result` is None where it says that nothing changes."""

    hub: Hub
    base: str
    result: str | None
    contract: str
    input: Mapping[str, Any]
    reach: Reach
    allow: frozenset[str]
    changes: Sequence[Change]

    def edits(self) -> list[Change]:
        """The regular files with other bytes."""
        return [change for change in self.changes if change.is_edit]


@dataclass(frozen=True, slots=True)
class GateReport:
    """What one gate says: `claim` is its evidence in a sentence, `counts` what anyone can count again."""

    gate: str
    verdict: Verdict
    claim: str
    findings: tuple[Finding, ...] = ()
    counts: Mapping[str, int] | None = None
    command: tuple[str, ...] = ()
    exit_code: int | None = None

    def as_evidence(self) -> Evidence:
        """The report as it travels in the handoff."""
        return Evidence(
            claim=f"{self.gate}: {self.claim}",
            verdict=self.verdict,
            counts=dict(self.counts or {}),
            command=self.command,
            exit_code=self.exit_code,
        )


Gate = Callable[[Case], GateReport]


def load_changes(hub: Hub, base: str, result: str) -> tuple[Change, ...]:
    """Every path that differs, with both contents."""
    differing = hub.changes(base, result, count_lines=False)
    wanted = sorted({oid for one in differing for oid in (_old_blob(one), _new_blob(one)) if oid is not None})
    blobs = dict(zip(wanted, hub.read_many(wanted), strict=True))
    return tuple(
        Change(
            path=one.path,
            kind=one.change,
            old_mode=one.old_mode,
            new_mode=one.new_mode,
            before=blobs.get(_old_blob(one) or ""),
            after=blobs.get(_new_blob(one) or ""),
        )
        for one in differing
    )


def judge(gate: str, findings: Sequence[Finding], *, clean: str, counts: Mapping[str, int]) -> GateReport:
    """`pass` with the claim `clean` if nothing was found, else `fail` with the first of the findings."""
    if not findings:
        return GateReport(gate, Verdict.PASS, clean, counts=counts)
    shown = tuple(findings[:MAX_FINDINGS])
    more = len(findings) - len(shown)
    if more:
        shown += (finding(gate, f"{more} more places of the same kind; the counts have them all."),)
    return GateReport(
        gate, Verdict.FAIL, f"{len(findings)} places are wrong", shown, {**counts, "findings": len(findings)}
    )


def could_not_run(gate: str, text: str) -> GateReport:
    """The gate has no answer, for this reason; it stays shut."""
    return GateReport(gate, Verdict.COULD_NOT_RUN, text, (finding(gate, text),))


def finding(gate: str, text: str, *, path: str | None = None, line: int = 0) -> Finding:
    """One reason, with what to do in its text."""
    return Finding(gate=gate, severity=Severity.ERROR, text=text, path=path, line=line)


def _old_blob(one: PathChange) -> str | None:
    return one.old_oid if one.old_mode != SUBMODULE_MODE else None


def _new_blob(one: PathChange) -> str | None:
    return one.new_oid if one.new_mode != SUBMODULE_MODE else None


def _is_file(mode: str | None) -> bool:
    return mode is not None and mode.startswith("100")

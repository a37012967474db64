"""The handoff: the structured report that ends an attempt. Never free text, and never believed unchecked."""

from typing import Any

from pydantic import Field

from schemas.base import Tolerant
from schemas.words import ChangeKind, Outcome, Severity, Verdict


class FileChange(Tolerant):
    """One path between base and result; `added` and `removed` count lines."""

    path: str
    change: ChangeKind
    added: int = 0
    removed: int = 0
    key_changes: tuple[str, ...] = ()


class Residue(Tolerant):
    """A place that looks like a site and was left, with the reason. `line` counts from 1; 0 is the whole file."""

    path: str
    line: int = 0
    text: str = ""
    reason: str


class RiskNote(Tolerant):
    """Something a reader should know before trusting the result."""

    severity: Severity
    text: str
    path: str | None = None


class Finding(Tolerant):
    """One reason in a verdict: which gate, where, and what to do about it."""

    gate: str
    severity: Severity = Severity.ERROR
    text: str
    path: str | None = None
    line: int = 0


class Evidence(Tolerant):
    """What backs a claim: a command with its exit code and output, or counts that anyone can get again.

    `head` and `tail` are the ends of the output; `log_digest` is the SHA-256 of all of it.
    """

    claim: str
    verdict: Verdict
    command: tuple[str, ...] = ()
    exit_code: int | None = None
    counts: dict[str, int] = Field(default_factory=dict)
    log_digest: str | None = None
    head: str = ""
    tail: str = ""


class Provenance(Tolerant):
    """Who made a change: the engine with its version, and the rule; `hunk` counts sites in the file."""

    path: str
    hunk: int = 0
    engine: str
    rule: str = ""


class Cost(Tolerant):
    """What an attempt took; money is in US dollars. If `cpu_is_whole` is false, it took at least `cpu_ms`."""

    wall_ms: int = 0
    cpu_ms: int = 0
    cpu_is_whole: bool = True
    tokens_in: int = 0
    tokens_out: int = 0
    money: float = 0.0


class Failure(Tolerant):
    """Why an attempt did not do its work: a stable code, a sentence, and what to try."""

    code: str
    message: str
    suggestion: str = ""


class Spill(Tolerant):
    """A field of a handoff that grew too large and lies as a blob in the hub."""

    blob: str
    digest: str
    count: int
    size_bytes: int


class Handoff(Tolerant):
    """The end of one attempt, as its worker tells it.

    `started_at` and `ended_at` are microseconds UTC on the worker's clock. `engines` maps engine to version.
    `spilled` names fields that travel as blobs instead (see workspace.spill).
    """

    action_id: str
    attempt: int
    nonce: str
    outcome: Outcome
    base: str
    result: str | None = None
    output: dict[str, Any] = Field(default_factory=dict)
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()
    files: tuple[FileChange, ...] = ()
    residue: tuple[Residue, ...] = ()
    risks: tuple[RiskNote, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    provenance: tuple[Provenance, ...] = ()
    engines: dict[str, str] = Field(default_factory=dict)
    cost: Cost = Field(default_factory=Cost)
    open_questions: tuple[str, ...] = ()
    suggested_next: tuple[str, ...] = ()
    error: Failure | None = None
    started_at: int = 0
    ended_at: int = 0
    spilled: dict[str, Spill] = Field(default_factory=dict)

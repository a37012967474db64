"""What one run of the tests said, test by test; and its form as a blob, so that a later run can be compared with it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from schemas.errors import ContractError

RESULTS_VERSION = 1


class Status(StrEnum):
    """How one test ended. Only `passed` counts as passing: a skip proves nothing about the code."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"

    @property
    def is_red(self) -> bool:
        """True if the test found something wrong."""
        return self in (Status.FAILED, Status.ERROR)


class Source(StrEnum):
    """Where the verdicts came from: a report with every test, or only the command's exit code."""

    JUNIT = "junit"
    EXIT_CODE = "exit_code"


@dataclass(frozen=True, slots=True)
class Case:
    """One test: its status, and for a red one the first words of why."""

    status: Status
    message: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """All tests of one run by id (pytest's node id), how the command ended, and how long it took.

    `import_roots` are the folders of the tree that had to be put on PYTHONPATH for the tests to load the tree's
    own code ("" is the tree itself).
    """

    by: Source
    cases: Mapping[str, Case]
    exit_code: int | None
    duration_ms: int
    import_roots: tuple[str, ...] = field(default=())

    def count(self, *statuses: Status) -> int:
        """How many tests ended so."""
        return sum(case.status in statuses for case in self.cases.values())

    def passed(self) -> frozenset[str]:
        """The ids of the tests that passed."""
        return frozenset(name for name, case in self.cases.items() if case.status is Status.PASSED)

    def counts(self) -> dict[str, int]:
        """Passed, failed (with errors) and skipped (with expected failures), as evidence shows them."""
        return {
            "passed": self.count(Status.PASSED),
            "failed": self.count(Status.FAILED, Status.ERROR),
            "skipped": self.count(Status.SKIPPED, Status.XFAILED),
        }


def to_blob(results: Results) -> bytes:
    """The results as canonical JSON; messages are left out, they belong to one run."""
    by_status: dict[str, list[str]] = {}
    for name, case in sorted(results.cases.items()):
        by_status.setdefault(case.status, []).append(name)
    document = {
        "v": RESULTS_VERSION,
        "by": results.by,
        "exit_code": results.exit_code,
        "duration_ms": results.duration_ms,
        "import_roots": list(results.import_roots),
        "tests": by_status,
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def from_blob(data: bytes) -> Results:
    """The results a blob holds. Raises ContractError if it is something else."""
    try:
        document = json.loads(data)
        cases = {name: Case(Status(word)) for word, names in document["tests"].items() for name in names}
        return Results(
            by=Source(document["by"]),
            cases=cases,
            exit_code=document["exit_code"],
            duration_ms=int(document["duration_ms"]),
            import_roots=tuple(document.get("import_roots", ())),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ContractError(
            f"The baseline blob does not hold test results ({error!r}).",
            suggestion="Run the baseline again with this version of Rolecall.",
        ) from error

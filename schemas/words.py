"""The closed sets of words that messages are made of (DESIGN: one word per idea)."""

from enum import StrEnum


class Lane(StrEnum):
    """Who waits for the answer: a person at a terminal, or nobody in particular."""

    INTERACTIVE = "interactive"
    STANDING = "standing"


class Outcome(StrEnum):
    """How an attempt ended."""

    DONE = "done"
    NO_CHANGE = "no_change"
    BLOCKED = "blocked"
    FAILED = "failed"
    COULD_NOT_RUN = "could_not_run"
    EXPIRED = "expired"
    CANCELED = "canceled"


class Verdict(StrEnum):
    """What a review or a test says; a gate opens on `pass` only."""

    PASS = "pass"
    FAIL = "fail"
    COULD_NOT_RUN = "could_not_run"
    NOTHING_RAN = "nothing_ran"


class Risk(StrEnum):
    """How much an action may break: low runs, medium is recorded, high needs a grant by a person."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Shardable(StrEnum):
    """Whether each file stands alone, or the rule only makes sense over the whole tree."""

    FILE = "file"
    WHOLE = "whole"


class TaskStatus(StrEnum):
    """The A2A task states."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"

    @property
    def is_final(self) -> bool:
        """True once nothing will happen to the task by itself."""
        return self in _FINAL


_FINAL = frozenset({TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELED, TaskStatus.REJECTED})


class Severity(StrEnum):
    """How loud a risk or finding is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ChangeKind(StrEnum):
    """What happened to one path between two commits."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    MODE = "mode"

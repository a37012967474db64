"""The names of refs in the hub: everything of a task lies under `refs/rolecall/<task>/`."""

from urllib.parse import quote

# Names that we use ourselves directly below a task: a step of that name must not get in their way.
_OURS = frozenset({"base", "head", "blobs", "candidates"})


def task_refs(task: str) -> str:
    """The prefix of all refs of a task."""
    return f"refs/rolecall/{_safe(task)}/"


def base_ref(task: str) -> str:
    """The commit that the task started from."""
    return f"{task_refs(task)}base"


def head_ref(task: str) -> str:
    """The task's last landed commit."""
    return f"{task_refs(task)}head"


def candidate_ref(task: str, name: str) -> str:
    """A composed commit that waits for its tests."""
    return f"{task_refs(task)}candidates/{_safe(name)}"


def attempt_ref(task: str, step: str, attempt: int) -> str:
    """The result of one attempt of a step."""
    name = _safe(step)
    return f"{task_refs(task)}{name + '%' if name in _OURS else name}/{attempt}"


def blob_ref(task: str, oid: str) -> str:
    """A blob that belongs to a task: a spilled field, a large request."""
    return f"{task_refs(task)}blobs/{oid}"


def _safe(name: str) -> str:
    # git forbids control characters, space, ~^:?*[\, "..", "@{", ".lock" at the end and more: keep what is plain.
    return quote(name, safe="").replace(".", "%2E").replace("~", "%7E")

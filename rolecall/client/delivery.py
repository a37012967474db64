"""Delivering: the head of a task becomes a branch in the user's repository; nothing else there is touched."""

from dataclasses import dataclass

from rolecall.client.phrases import short
from schemas.errors import ContractError
from schemas.report import Report
from workspace.hub import Hub
from workspace.source import Source


@dataclass(frozen=True, slots=True)
class Delivered:
    """The branch and where it points; `is_new` is False if it stood there already."""

    branch: str
    commit: str
    is_new: bool


def check_deliverable(report: Report) -> None:
    """Raises ContractError if there is nothing to deliver (yet), with what to do."""
    name = short(report.task)
    if not report.status.is_final:
        raise ContractError(
            f"Task {name} is not over yet ({report.status}).",
            suggestion=f"`rolecall watch {name}` waits for it.",
        )
    if not report.head or report.head == report.base:
        raise ContractError(
            f"Nothing of task {name} landed, so there is nothing to deliver.",
            suggestion=f"`rolecall report {name}` says why.",
        )


def deliver(source: Source, hub: Hub, commit: str, branch: str) -> Delivered:
    """Create the branch at a commit of the hub. Raises ContractError or WorkspaceError; the result stays in the hub."""
    return Delivered(branch, commit, source.deliver(hub, commit, branch))

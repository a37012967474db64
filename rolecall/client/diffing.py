"""The difference between two commits of the hub, as git writes it."""

from rolecall.client.phrases import short
from schemas.errors import ContractError
from schemas.report import Report
from schemas.suggest import nearest
from workspace.git import git
from workspace.hub import Hub


def commits_of(report: Report, rule: str | None, hub: Hub) -> tuple[str, str]:
    """Base and head of the whole task, or the two ends of one rule's commit. Raises ContractError."""
    if rule is None:
        if not report.head or report.head == report.base:
            raise ContractError(
                f"Nothing of task {short(report.task)} landed.",
                suggestion=f"`rolecall report {short(report.task)}` says why.",
            )
        return report.base, report.head
    landed = {one.rule: one.commit for one in report.landed if one.commit}
    commit = landed.get(rule)
    if commit is None:
        hint = nearest(rule, landed)
        raise ContractError(
            f"No rule {rule!r} landed in task {short(report.task)}; landed are {', '.join(landed) or 'none'}.",
            suggestion=f"Did you mean {hint!r}?" if hint else "",
        )
    hub.ensure(commit)
    parent = git(hub.repository, "rev-parse", "--verify", "--end-of-options", f"{commit}^").decode().strip()
    return parent, commit


def diff(hub: Hub, base: str, head: str, *, stat: bool = False, colour: bool = False) -> bytes:
    """The difference, bytes as they are in the files."""
    for commit in (base, head):
        hub.ensure(commit)
    shape = ("--stat=110",) if stat else ("--patch", "--binary", "--full-index")
    tint = f"--color={'always' if colour else 'never'}"
    return git(hub.repository, "diff", *shape, tint, "--no-ext-diff", "--no-textconv", base, head, "--")

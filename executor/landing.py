"""From the files that an engine wants changed to the result commit: bounded, deterministic, published.

The same refactor gives the same commit id wherever and however often it runs: the message follows from rule, shard
and the digest of what was asked (never from the task), author and dates from the base.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from schemas.action import Action
from schemas.contracts import canonical_json
from schemas.errors import WorkspaceError
from schemas.scope import Shard, path_key
from workspace.entries import NewFile
from workspace.hub import Hub, PathChange
from workspace.refs import attempt_ref

_LONGEST_SUBJECT = 120


class OutOfReachError(WorkspaceError):
    """What shall be changed lies outside the action's reach: no retry makes that right."""


@dataclass(frozen=True, slots=True)
class Landed:
    """A result commit and what differs in it; `commit` is None where nothing does."""

    commit: str | None
    changes: tuple[PathChange, ...] = ()


def land(action: Action, hub: Hub, changes: Mapping[str, NewFile | None], *, maker: str) -> Landed:
    """Commit the changes on the action's base and publish the result under the attempt's own ref.

    `maker` is what made them, with its version. Raises OutOfReachError if a path is outside the action's reach.
    """
    outside = sorted((path for path in changes if not action.reach.admits(path)), key=path_key)
    if outside:
        raise OutOfReachError(
            f"{maker} wants to change {outside[0]!r}, which is outside this step's reach ({len(outside)} such paths).",
            suggestion="Widen the rule's scope, or mend the engine.",
        )
    result = hub.commit(action.base, changes, message=message_for(action, maker))
    if result == action.base:
        return Landed(None)
    hub.publish(attempt_ref(action.task, action.step, action.attempt), result)
    return Landed(result, hub.changes(action.base, result))


def message_for(action: Action, maker: str) -> str:
    """The commit message of a result."""
    contract = action.contract.partition("@")[0]
    subject = f"{action.rule}: {contract}" if action.rule else contract
    subject = _one_line(f"{subject}{_words(action.reach.shard)}")[:_LONGEST_SUBJECT].rstrip()
    return f"{subject}\n\nRolecall-Action: {action_digest(action, maker)}\n"


def action_digest(action: Action, maker: str) -> str:
    """SHA-256 of what the result follows from: contract, input, reach, base and the engine's version."""
    facts = {
        "contract": action.contract,
        "input": action.input,
        "reach": action.reach.model_dump(mode="json"),
        "base": action.base,
        "maker": maker,
    }
    return sha256(canonical_json(facts).encode("utf-8", "surrogateescape")).hexdigest()


def _words(shard: Shard) -> str:
    if not shard.start and shard.stop is None:
        return ""
    return f" from {shard.start or 'the first file'} up to {shard.stop or 'the last'}"


def _one_line(text: str) -> str:
    printable = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return " ".join(printable.split())

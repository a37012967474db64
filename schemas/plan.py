"""The plan: the rules in landing order, cut into shards, with a revision number and a reason."""

from typing import Any

from pydantic import Field

from schemas.base import Strict
from schemas.scope import Scope, Shard
from schemas.words import Shardable


class PlannedRule(Strict):
    """One rule, ready to run: `canary` is the index of the shard that is tried before the fan-out.

    `files` and `size_bytes` count what the rule would look at; `sites` is a cheap estimate (literal hits).
    `run_ahead=False` means that nothing may work on top of this rule before it has been tested.
    """

    rule: str
    contract: str
    input: dict[str, Any]
    scope: Scope = Field(default_factory=Scope)
    shardable: Shardable
    shards: tuple[Shard, ...] = Field(min_length=1)
    canary: int | None = None
    run_ahead: bool = True
    files: int = 0
    size_bytes: int = 0
    sites: int = 0


class Plan(Strict):
    """All rules of a task; `notes` are sentences for the report (what was measured, what was changed)."""

    revision: int = Field(ge=1)
    reason: str
    rules: tuple[PlannedRule, ...]
    notes: tuple[str, ...] = ()

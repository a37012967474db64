"""An action: the work of one step as it goes over the wire, and the grant that lets it run."""

from typing import Any

from pydantic import Field

from schemas.base import Strict, Tolerant
from schemas.scope import Reach


class Action(Strict):
    """What a worker is asked to do. The exact bytes of this, packed, are what the grant signs.

    `input` is what the contract's schema allows, after coercion. `base` is the commit to work on (or to test).
    `nonce` is known only to the supervisor and to whoever holds the action; the handoff must cite it.
    """

    task: str
    action_id: str
    step: str
    rule: str | None = None
    contract: str = Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+@[0-9]+$")
    input: dict[str, Any]
    base: str = Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")
    reach: Reach = Field(default_factory=Reach)
    attempt: int = Field(ge=1)
    nonce: str = Field(min_length=16, max_length=64)
    pool: str
    environment: str
    time_limit_s: float = Field(gt=0)


class Grant(Tolerant):
    """The supervisor's word that one action may run: packed, signed with Ed25519, carried verbatim.

    `digest` is the SHA-256 of the packed action; `start_by` is microseconds UTC.
    """

    v: int = 1
    task: str
    action_id: str
    attempt: int
    pool: str
    environment: str
    base: str
    digest: str
    start_by: int

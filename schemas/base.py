"""The two kinds of boundary model: strict for what must be exact, tolerant for what may come from a newer peer.

A model is built when it is first used: no process uses all of them.
"""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Frozen; an unknown field is an error (action inputs, recipes, contracts)."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Tolerant(BaseModel):
    """Frozen; unknown fields are ignored, so old and new versions work side by side (envelopes, handoffs)."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

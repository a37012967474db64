"""What a stack consists of, as plain values: which children, with which options and environment."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rolecall.processes.child import ChildSpec

# How long a role may take to finish what runs when the stack ends; then it is told to stop at once.
DRAIN_S = 20.0
BROKER_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class StackPlan:
    """The size of a stack. `broker_url=None`: a private node on this machine."""

    environment: str
    state_dir: Path
    executors: int
    slots: int = 1
    testers: int = 1
    broker_url: str | None = field(default=None, repr=False)
    sandbox: str | None = None
    log_level: str = "info"


def default_executors(processors: int) -> int:
    """As many as there are processors, but a laptop stays usable and two show that it is a fleet."""
    return max(2, min(4, processors))


def children(
    plan: StackPlan,
    *,
    broker_url: str,
    hub: str,
    public_key: str,
    parent_pid: int,
    inherited: Mapping[str, str],
) -> tuple[ChildSpec, tuple[ChildSpec, ...]]:
    """The supervisor, and the roles that serve it. Secrets go by environment: options can be read by everyone."""
    env = {
        **inherited,
        "ROLECALL_ENVIRONMENT": plan.environment,
        "ROLECALL_BROKER_URL": broker_url,
        "ROLECALL_HUB": hub,
        "ROLECALL_PUBLIC_KEY": public_key,
        "PYTHONUNBUFFERED": "1",
    }

    def spec(role: str, slots: int, name: str = "", *, may_leave: bool = False) -> ChildSpec:
        words = (sys.executable, "-m", role, "--slots", str(slots), "--parent-pid", str(parent_pid))
        more = ("--wait-for-broker", f"{BROKER_WAIT_S:g}", "--drain-limit", f"{DRAIN_S:g}")
        sandbox = ("--sandbox", plan.sandbox) if plan.sandbox else ()
        command = (*words, *more, "--log-level", plan.log_level, *sandbox)
        return ChildSpec(name or role, command, env, may_leave)

    several = plan.executors > 1
    executors = tuple(
        spec("executor", plan.slots, f"executor-{number}", may_leave=several)
        for number in range(1, plan.executors + 1)
    )
    # A review applies the rule again, so it takes about as much as the change itself.
    reviews = max(1, min(4, plan.executors * plan.slots))
    roles = (spec("planner", 1), *executors, spec("reviewer", reviews), spec("tester", plan.testers))
    return spec("supervisor", 1), roles

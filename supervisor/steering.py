"""Steering by the pulse: what fails often on one instance and works on others goes elsewhere for a while."""

from collections.abc import Iterable

from schemas.messages import Pulse
from supervisor.workers import Worker

# An instance that fails this often what others do well takes no new work for a while.
FAILURES_TO_REST = 5
# Others do a contract well if they end it this much more often than they fail.
GOOD_RATIO = 4


def failing_contract(worker: Worker, others: Iterable[Worker]) -> str | None:
    """The contract for which the worker should rest; None if it does no worse than the others of its pool."""
    peers = [
        one
        for one in others
        if one.pool == worker.pool and one.instance != worker.instance and one.state.takes_work
    ]
    for contract, pulse in worker.pulse.items():
        often = pulse.failed >= FAILURES_TO_REST + worker.rested_at.get(contract, 0)
        if often and pulse.failed > pulse.done and any(_does_well(one, contract) for one in peers):
            return contract
    return None


def _does_well(worker: Worker, contract: str) -> bool:
    pulse = worker.pulse.get(contract, Pulse())
    return pulse.done > GOOD_RATIO * pulse.failed

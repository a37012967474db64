"""Who holds which attempt: an index by action and by instance. The record itself is the journal's."""

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Lease:
    """One holder of one attempt. `accepted_at` is on the worker's own clock, like its heartbeats.

    `handing_off`: its handoff is here and being looked at, so silence says nothing about it.
    """

    task: str
    action_id: str
    attempt: int
    instance: str
    accepted_at: int
    missing: int = 0
    handing_off: bool = False


class Leases:
    """All live leases."""

    def __init__(self) -> None:
        self._by_action: dict[str, dict[tuple[int, str], Lease]] = {}
        self._by_instance: dict[str, set[tuple[str, int]]] = {}

    def add(self, lease: Lease) -> None:
        """Record a holder."""
        self._by_action.setdefault(lease.action_id, {})[lease.attempt, lease.instance] = lease
        self._by_instance.setdefault(lease.instance, set()).add((lease.action_id, lease.attempt))

    def release(self, action_id: str, attempt: int | None = None, instance: str | None = None) -> list[Lease]:
        """Forget the holders of an action (or one of them); those that were forgotten."""
        held = self._by_action.get(action_id, {})
        ended = [
            lease
            for (number, who), lease in held.items()
            if attempt in (None, number) and instance in (None, who)
        ]
        for lease in ended:
            del held[lease.attempt, lease.instance]
            self._by_instance[lease.instance].discard((lease.action_id, lease.attempt))
        if not held:
            self._by_action.pop(action_id, None)
        return ended

    def of_instance(self, instance: str) -> list[Lease]:
        """What an instance holds."""
        keys = sorted(self._by_instance.get(instance, ()))
        return [self._by_action[action_id][attempt, instance] for action_id, attempt in keys]

    def instances(self) -> Iterable[str]:
        """Every instance that holds something."""
        return [instance for instance, held in self._by_instance.items() if held]

    def silent(self, instance: str) -> list[Lease]:
        """What an instance holds and has not handed off."""
        return [lease for lease in self.of_instance(instance) if not lease.handing_off]

    def set_missing(self, lease: Lease, count: int) -> None:
        """Note how many later heartbeats did not list the lease."""
        if lease.missing != count:
            self._by_action[lease.action_id][lease.attempt, lease.instance] = replace(lease, missing=count)

    def set_handing_off(self, action_id: str, attempt: int, instance: str, *, is_so: bool) -> None:
        """Note that the holder's handoff is being looked at, or was."""
        held = self._by_action.get(action_id, {})
        lease = held.get((attempt, instance))
        if lease is not None:
            held[attempt, instance] = replace(lease, handing_off=is_so)

"""The roll call: which processes are there, what they serve and run, and who is lost.

Nothing here is journaled; after a start everything is learned again from announcements and heartbeats. Silence is
measured on the lease clock, which runs only while the supervisor's own probe comes round: an outage of the broker or
of the supervisor ends no lease by itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from schemas.contracts import ContractDocument, ContractRegistry, parse_contract
from schemas.errors import ContractError
from schemas.messages import Pulse, RoleAnnounced, RoleHeartbeat, Running
from supervisor.leases import Lease, Leases

HEARTBEAT_US = 5_000_000
# Two missed heartbeats: no new work; three: lost. Half a beat of slack for the way.
SUSPECT_US = 2 * HEARTBEAT_US + HEARTBEAT_US // 2
LOST_US = 3 * HEARTBEAT_US + HEARTBEAT_US // 2
# A lease that its holder's heartbeats do not list this often, sent after it accepted, is not held.
MISSING_AT_MOST = 2
# The lease clock never jumps: whatever passed between two probes, it moves by at most this.
CLOCK_STEP_US = 3_000_000
# An instance that fails this often what others do well takes no new work for a while.
FAILURES_TO_REST = 5
REST_S = 60.0


class WorkerState(StrEnum):
    """How a process stands in the roll call."""

    READY = "ready"
    RESTING = "resting"
    DRAINING = "draining"
    SUSPECT = "suspect"
    LOST = "lost"
    GONE = "gone"

    @property
    def takes_work(self) -> bool:
        """True if new work may be meant for it."""
        return self is WorkerState.READY


@dataclass(frozen=True, slots=True)
class Worker:
    """One process. `seen` is on the lease clock; `heartbeat_at` and `rests_until` are wall-clock microseconds."""

    instance: str
    role: str
    pool: str
    host: str
    pid: int
    version: str
    slots: int
    digest: str
    state: WorkerState = WorkerState.READY
    seen: int = 0
    heartbeat_at: int = 0
    rests_until: int = 0
    running: tuple[Running, ...] = ()
    pulse: dict[str, Pulse] = field(default_factory=dict)
    rested_at: dict[str, int] = field(default_factory=dict)
    contracts: tuple[ContractDocument, ...] = ()
    engines: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lost:
    """A lease that is over without a handoff, and why."""

    lease: Lease
    reason: str


@dataclass(frozen=True, slots=True)
class Order:
    """Something to tell one instance: stop an attempt, announce again, or rest."""

    pool: str
    instance: str
    stop: tuple[str, int] | None = None
    announce: bool = False
    rest_s: float = 0.0
    reason: str = ""


class Fleet:
    """The processes and the leases they hold."""

    def __init__(self, registry: ContractRegistry) -> None:
        self.registry = registry
        self.leases = Leases()
        self.workers: dict[str, Worker] = {}
        self.clock = 0
        self._probed_at = 0
        self._unheard: dict[str, int] = {}

    # ---- what processes say ------------------------------------------------------------------------------------

    def announced(self, instance: str, said: RoleAnnounced, now: int) -> str:
        """Take an announcement in; the reason if (part of) it is refused."""
        refused = ""
        accepted: list[ContractDocument] = []
        for served in said.contracts:
            try:
                document = parse_contract(served.document, origin=f"{said.role} {instance}")
                self.registry.add(document)
            except ContractError as error:
                refused = str(error)
                continue
            if document.pool == said.pool:
                accepted.append(document)
            else:
                refused = f"{document.ref} belongs to the pool {document.pool!r}, not {said.pool!r}."
        known = self.workers.get(instance)
        self.workers[instance] = Worker(
            instance=instance,
            role=said.role,
            pool=said.pool,
            host=said.host,
            pid=said.pid,
            version=said.version,
            slots=said.slots if not refused else 0,
            digest=said.digest,
            seen=self.clock,
            heartbeat_at=now,
            running=known.running if known else (),
            contracts=tuple(accepted),
            engines=dict(said.engines),
        )
        return refused

    def goodbye(self, instance: str, reason: str) -> list[Lost]:
        """A process leaves: its leases end at once."""
        worker = self.workers.get(instance)
        if worker is not None:
            self.workers[instance] = replace(worker, state=WorkerState.GONE, running=())
        return [Lost(lease, reason) for lease in self.leases.of_instance(instance)]

    def heartbeat(
        self, instance: str, said: RoleHeartbeat, *, sent_at: int, now: int
    ) -> tuple[list[Lost], list[Order]]:
        """Reconcile a heartbeat: running but not leased is stopped, leased but missing is not held."""
        worker = self.workers.get(instance)
        orders: list[Order] = []
        if worker is None or worker.digest != said.announcement:
            orders.append(Order(said.pool, instance, announce=True))
        if worker is None:
            return [], orders
        state = WorkerState(said.state) if said.state in ("draining", "resting") else WorkerState.READY
        if now < worker.rests_until:
            state = WorkerState.RESTING
        self.workers[instance] = replace(
            worker,
            state=state,
            seen=self.clock,
            heartbeat_at=now,
            running=said.running,
            pulse=dict(said.pulse),
        )
        listed = {(one.action_id, one.attempt) for one in said.running}
        held = {(lease.action_id, lease.attempt): lease for lease in self.leases.of_instance(instance)}
        orders += [
            Order(worker.pool, instance, stop=key, reason="no lease") for key in sorted(listed - held.keys())
        ]
        lost = [
            Lost(lease, "its heartbeats do not list it any more")
            for key, lease in held.items()
            if key not in listed and self._missing(lease, sent_at)
        ]
        for key in listed & held.keys():
            self.leases.set_missing(held[key], 0)
        return lost, orders + self._rest(instance, now)

    def _missing(self, lease: Lease, sent_at: int) -> bool:
        if sent_at <= lease.accepted_at:
            return False
        self.leases.set_missing(lease, lease.missing + 1)
        return lease.missing + 1 > MISSING_AT_MOST

    def _rest(self, instance: str, now: int) -> list[Order]:
        """Steer by the pulse: what fails often here and seldom elsewhere goes elsewhere for a while."""
        worker = self.workers[instance]
        for contract, pulse in worker.pulse.items():
            if (
                pulse.failed < FAILURES_TO_REST + worker.rested_at.get(contract, 0)
                or pulse.failed <= pulse.done
            ):
                continue
            others = [
                other.pulse.get(contract, Pulse())
                for other in self.workers.values()
                if other.pool == worker.pool and other.instance != instance and other.state.takes_work
            ]
            if any(one.done > 4 * one.failed for one in others):
                self.workers[instance] = replace(
                    worker,
                    state=WorkerState.RESTING,
                    rests_until=now + int(REST_S * 1_000_000),
                    rested_at={**worker.rested_at, contract: pulse.failed},
                )
                reason = f"{contract} failed {pulse.failed} times here and works elsewhere"
                return [Order(worker.pool, instance, rest_s=REST_S, reason=reason)]
        return []

    # ---- time --------------------------------------------------------------------------------------------------

    def probe_returned(self, now: int) -> None:
        """The supervisor's own message came round: everything sent before it has been read."""
        if self._probed_at:
            self.clock += min(max(0, now - self._probed_at), CLOCK_STEP_US)
        self._probed_at = now

    def connection_lost(self) -> None:
        """The lease clock stands until a probe comes round again, and then everybody has one full lease time."""
        self._probed_at = 0
        self.workers = {key: replace(worker, seen=self.clock) for key, worker in self.workers.items()}

    def clock_runs(self, now: int) -> bool:
        """True while probes come round."""
        return self._probed_at > 0 and now - self._probed_at < CLOCK_STEP_US

    def silent(self) -> list[Lost]:
        """Judge by the lease clock who is suspect or lost; the leases of the lost."""
        lost: list[Lost] = []
        for instance in self.leases.instances():
            if instance in self.workers:
                self._unheard.pop(instance, None)
            elif self.clock - self._unheard.setdefault(instance, self.clock) >= LOST_US:
                lost += [
                    Lost(lease, "its process was never heard") for lease in self.leases.of_instance(instance)
                ]
        for instance, worker in list(self.workers.items()):
            if worker.state in (WorkerState.LOST, WorkerState.GONE):
                continue
            silence = self.clock - worker.seen
            if silence >= LOST_US:
                self.workers[instance] = replace(worker, state=WorkerState.LOST, running=())
                lost += [Lost(lease, "its process was lost") for lease in self.leases.of_instance(instance)]
            elif silence >= SUSPECT_US:
                self.workers[instance] = replace(worker, state=WorkerState.SUSPECT)
        return lost

    def forget_gone(self, before: int) -> list[str]:
        """Drop processes that left or were lost, last heard before `before` (wall clock); their names."""
        names = [
            name
            for name, worker in self.workers.items()
            if worker.state in (WorkerState.LOST, WorkerState.GONE) and worker.heartbeat_at < before
        ]
        for name in names:
            del self.workers[name]
        return names

    # ---- what dispatching asks ---------------------------------------------------------------------------------

    def slots(self, pool: str) -> int:
        """How many actions the live processes of a pool can run at once."""
        return sum(one.slots for one in self._serving(pool))

    def live_pools(self) -> frozenset[str]:
        """The pools somebody serves now."""
        return frozenset(one.pool for one in self.workers.values() if one.state.takes_work and one.slots)

    def serves(self, ref: str) -> bool:
        """True if a process that is there announced this contract."""
        return any(
            document.ref == ref
            for worker in self.workers.values()
            if worker.state not in (WorkerState.LOST, WorkerState.GONE)
            for document in worker.contracts
        )

    def _serving(self, pool: str) -> Iterable[Worker]:
        return (one for one in self.workers.values() if one.pool == pool and one.state.takes_work)

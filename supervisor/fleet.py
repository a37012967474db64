"""The roll call: which processes are there, what they serve and run, and who is lost.

Nothing here is journaled; after a start everything is learned again from announcements and heartbeats, and only who
was there before is expected. Silence is measured on the lease clock, which runs only while the supervisor's own probe
comes round: an outage of the broker or of the supervisor ends no lease by itself. Heartbeats overtake what waits in
the supervisor's queue, so they are only held against a lease once a probe has shown that everything sent before has
been read.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bus.topology import control_key
from schemas.contracts import ContractDocument, ContractRegistry, parse_contract
from schemas.errors import ContractError
from schemas.messages import RoleAnnounced, RoleHeartbeat
from schemas.validation import checker
from supervisor.leases import Lease, Leases
from supervisor.steering import failing_contract
from supervisor.workers import NOBODY, Worker, WorkerState

HEARTBEAT_US = 5_000_000
# Two missed heartbeats: no new work; three: lost. Half a beat of slack for the way.
SUSPECT_US = 2 * HEARTBEAT_US + HEARTBEAT_US // 2
LOST_US = 3 * HEARTBEAT_US + HEARTBEAT_US // 2
# A lease that its holder's heartbeats do not list this often, sent after it accepted, is not held.
MISSING_AT_MOST = 2
# The lease clock never jumps: whatever passed between two probes, it moves by at most this.
CLOCK_STEP_US = 3_000_000
# How long an instance takes no new work that fails often what others do well.
REST_S = 60.0


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
        self._steady_since = 0
        self._read_until = 0
        self._unheard: dict[str, int] = {}

    def expect(self, worker: Worker) -> None:
        """A process that was there before this supervisor started: no work for it before it is heard again.

        Raises ContractError if what it served is not what this release knows under that name.
        """
        for document in worker.contracts:
            self.registry.add(document)
        self.workers[worker.instance] = replace(worker, state=WorkerState.SUSPECT, seen=self.clock)

    # ---- what processes say ------------------------------------------------------------------------------------

    def announced(self, instance: str, said: RoleAnnounced, now: int) -> str:
        """Take an announcement in; the reason if (part of) it is refused."""
        try:
            control_key(said.pool, instance)
        except ContractError as error:  # nobody could tell it anything
            return str(error)
        refused = ""
        accepted: list[ContractDocument] = []
        for served in said.contracts:
            try:
                document = parse_contract(served.document, origin=f"{said.role} {instance}")
                if document.ref not in self.registry:
                    _check_schemas(document)
                self.registry.add(document)
            except ContractError as error:
                refused = str(error)
                continue
            if document.pool == said.pool:
                accepted.append(document)
            else:
                refused = f"{document.ref} belongs to the pool {document.pool!r}, not {said.pool!r}."
        known = self.workers.get(instance) or NOBODY
        self.workers[instance] = Worker(
            instance=instance,
            role=said.role,
            pool=said.pool,
            host=said.host,
            pid=said.pid,
            version=said.version,
            slots=said.slots if not refused else 0,
            digest=said.digest,
            state=WorkerState.RESTING if now < known.rests_until else WorkerState.READY,
            seen=self.clock,
            heartbeat_at=now,
            rests_until=known.rests_until,
            running=known.running,
            pulse=known.pulse,
            rested_at=known.rested_at,
            contracts=tuple(accepted),
            engines=dict(said.engines),
        )
        return refused

    def goodbye(self, instance: str, reason: str) -> list[Lost]:
        """A process leaves: its leases end at once."""
        worker = self.workers.get(instance)
        if worker is not None:
            self.workers[instance] = replace(worker, state=WorkerState.GONE, running=())
        return [Lost(lease, reason) for lease in self.leases.silent(instance)]

    def heard(self, instance: str) -> None:
        """Something else came of a process: one that was taken for lost is there, and has time to say more."""
        worker = self.workers.get(instance)
        if worker is not None and worker.state is WorkerState.LOST:
            self.workers[instance] = replace(worker, state=WorkerState.SUSPECT, seen=self.clock)

    def heartbeat(
        self, instance: str, said: RoleHeartbeat, *, sent_at: int, now: int
    ) -> tuple[list[Lost], list[Order]]:
        """Reconcile a heartbeat: running but not leased is stopped, leased but missing is not held."""
        worker = self.workers.get(instance)
        orders: list[Order] = []
        if worker is None or worker.digest != said.announcement:
            orders.append(Order(said.pool, instance, announce=True))
        if worker is None or worker.state is WorkerState.GONE:  # the goodbye overtook its last heartbeats
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
        for key, lease in held.items():
            if key in listed:
                self.leases.set_missing(lease, 0)
            elif sent_at > lease.accepted_at and not lease.handing_off:
                self.leases.set_missing(lease, lease.missing + 1)
        if self._read_until < worker.heartbeat_at:
            return [], orders + self._rest(
                instance, now
            )  # an acceptance or a handoff may still be in the queue
        before = {(one.action_id, one.attempt) for one in worker.running}
        orders += [
            Order(worker.pool, instance, stop=key, reason="no lease")
            for key in sorted((listed & before) - held.keys())
        ]
        lost = [
            Lost(lease, "its heartbeats do not list it any more")
            for lease in self.leases.silent(instance)
            if lease.missing > MISSING_AT_MOST
        ]
        return lost, orders + self._rest(instance, now)

    def _rest(self, instance: str, now: int) -> list[Order]:
        worker = self.workers[instance]
        contract = failing_contract(worker, self.workers.values())
        if contract is None:
            return []
        failed = worker.pulse[contract].failed
        self.workers[instance] = replace(
            worker,
            state=WorkerState.RESTING,
            rests_until=now + int(REST_S * 1_000_000),
            rested_at={**worker.rested_at, contract: failed},
        )
        reason = f"{contract} failed {failed} times here and works elsewhere"
        return [Order(worker.pool, instance, rest_s=REST_S, reason=reason)]

    # ---- time --------------------------------------------------------------------------------------------------

    def probe_returned(self, now: int, sent_at: int) -> None:
        """The supervisor's own message came round: everything published before `sent_at` has been read."""
        if self.steady_since(now) is None:
            self._steady_since = now
        if self._probed_at:
            self.clock += min(max(0, now - self._probed_at), CLOCK_STEP_US)
        self._probed_at = now
        self._read_until = sent_at

    def connection_lost(self) -> None:
        """The lease clock stands until a probe comes round again, and then everybody has one full lease time."""
        self._probed_at = 0
        self._read_until = 0
        self._unheard.clear()
        self.workers = {key: replace(worker, seen=self.clock) for key, worker in self.workers.items()}

    def steady_since(self, now: int) -> int | None:
        """Since when the lease clock has been running (microseconds UTC); None while no probe comes round."""
        runs = self._probed_at > 0 and now - self._probed_at < CLOCK_STEP_US
        return self._steady_since if runs else None

    def silent(self) -> list[Lost]:
        """Judge by the lease clock who is suspect or lost; the leases of the lost."""
        lost: list[Lost] = []
        for instance in self.leases.instances():
            if instance in self.workers:
                self._unheard.pop(instance, None)
            elif self.clock - self._unheard.setdefault(instance, self.clock) >= LOST_US:
                lost += [Lost(lease, "its process was never heard") for lease in self.leases.silent(instance)]
        for instance, worker in list(self.workers.items()):
            silence = self.clock - worker.seen
            if worker.state is WorkerState.GONE:
                lost += [Lost(lease, "its process left") for lease in self.leases.silent(instance)]
            elif worker.state is WorkerState.LOST or silence >= LOST_US:
                self.workers[instance] = replace(worker, state=WorkerState.LOST, running=())
                lost += [Lost(lease, "its process was lost") for lease in self.leases.silent(instance)]
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

    def pool_of(self, instance: str) -> str:
        """The pool of a process, or "" if it is not known here."""
        worker = self.workers.get(instance)
        return worker.pool if worker is not None else ""

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


def _check_schemas(document: ContractDocument) -> None:
    """Raises ContractError if what a contract calls a schema is none."""
    try:
        checker(document.input)
        checker(document.output)
    except ValueError as error:
        raise ContractError(f"{document.ref}: its input or output is no JSON Schema: {error}.") from error

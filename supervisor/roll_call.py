"""The roll call as it arrives: announcements, goodbyes, heartbeats, the probe, and the passing of time.

What follows for tasks (a lost holder) goes back as facts; what follows for processes goes out as orders.
"""

import json
from collections.abc import Callable, Iterable

import structlog
from pydantic import BaseModel

from bus.api import Bus, Delivery, Settlement
from bus.metrics import Metrics
from schemas.clock import now_us
from schemas.contracts import parse_contract
from schemas.envelope import Envelope
from schemas.errors import ContractError
from schemas.messages import ProbeSent, RoleAnnounced, RoleGoodbye, RoleHeartbeat
from schemas.report import WorkerLine
from supervisor.fleet import Fleet, Lost
from supervisor.intake import Fact
from supervisor.journal.journal import Row
from supervisor.saga.messages import LoseHolder
from supervisor.speaking import Voice
from supervisor.workers import Worker

# Processes that are gone are listed for this long.
GONE_LISTED_US = 10 * 60 * 1_000_000


class RollCall:
    """Keeps the fleet's picture up to date."""

    def __init__(
        self,
        *,
        bus: Bus,
        fleet: Fleet,
        voice: Voice,
        metrics: Metrics,
        epoch: int,
        report: Callable[[Fact], None],
    ) -> None:
        self._bus = bus
        self._fleet = fleet
        self._voice = voice
        self._metrics = metrics
        self._epoch = epoch
        self._report = report
        self._dirty: set[str] = set()
        self._probes = 0
        self._log = structlog.get_logger("supervisor.roll_call")

    def resume(self, written: Iterable[bytes]) -> None:
        """Expect the processes that the supervisor before this one knew: what they serve is known at once."""
        for data in written:
            try:
                self._fleet.expect(_remembered(data))
            except ContractError as error:  # of another release; it will announce itself
                self._log.info("A process is not expected.", action="worker_not_expected", reason=str(error))

    def takes(self, envelope: Envelope, body: BaseModel, at: int) -> bool:
        """Take in what concerns the fleet; True if the message was of that kind."""
        instance = envelope.sender.instance
        match body:
            case RoleAnnounced():
                self._announced(instance, body, at)
            case RoleGoodbye():
                self._lose(self._fleet.goodbye(instance, body.reason), at)
                self._dirty.add(instance)
                self._log.info(f"{envelope.sender.role} left.", action="role_left", instance=instance)
            case ProbeSent():
                if body.token.startswith(f"{self._epoch}:"):
                    self._fleet.probe_returned(at, envelope.created_at)
            case RoleHeartbeat():
                self._heard(envelope, body, at)
            case _:
                return False
        return True

    async def heartbeat(self, delivery: Delivery) -> None:
        """A delivery of the heartbeat queue."""
        if isinstance(delivery.body, RoleHeartbeat) and delivery.envelope is not None and not delivery.fault:
            self._heard(delivery.envelope, delivery.body, now_us())
        await self._bus.settle(delivery, Settlement.ACK)

    async def reconnected(self) -> None:
        """The lease clock stands until the probe comes round."""
        self._fleet.connection_lost()

    def tick(self, at: int) -> int | None:
        """Time passed: send a probe, judge who is lost. Since when the lease clock has been running, if it runs."""
        self._probes += 1
        self._voice.probe(f"{self._epoch}:{self._probes}", at)
        steady_since = self._fleet.steady_since(at)
        if steady_since is not None:
            before = {name: worker.state for name, worker in self._fleet.workers.items()}
            self._lose(self._fleet.silent(), at)
            for name, worker in self._fleet.workers.items():
                if worker.state is not before[name]:
                    self._dirty.add(name)
                    self._log.warning(
                        f"{worker.role} is {worker.state}.", action="worker_silent", instance=name
                    )
        self._dirty |= set(self._fleet.forget_gone(at - GONE_LISTED_US))
        return steady_since

    def rows(self) -> dict[str, Row | None]:
        """The processes that changed since the last call, as journal rows (None: gone from the list)."""
        dirty, self._dirty = self._dirty, set()
        return {name: _row(self._fleet.workers.get(name)) for name in sorted(dirty)}

    @property
    def has_rows(self) -> bool:
        """True if some process changed."""
        return bool(self._dirty)

    def _announced(self, instance: str, said: RoleAnnounced, at: int) -> None:
        is_new = instance not in self._fleet.workers
        refused = self._fleet.announced(instance, said, at)
        self._dirty.add(instance)
        if refused:
            self._log.warning(
                "A contract was refused.", action="contract_refused", instance=instance, reason=refused
            )
        elif is_new:
            self._log.info(
                f"{said.role} is here, {said.slots} slots.",
                action="role_announced",
                instance=instance,
                pool=said.pool,
            )

    def _heard(self, envelope: Envelope, said: RoleHeartbeat, at: int) -> None:
        instance = envelope.sender.instance
        lost, orders = self._fleet.heartbeat(instance, said, sent_at=envelope.created_at, now=at)
        if self._fleet.steady_since(at) is not None:
            self._lose(lost, at)
        self._voice.order(orders, at)
        self._dirty.add(instance)

    def _lose(self, lost: list[Lost], at: int) -> None:
        for one in lost:
            lease = one.lease
            worker = self._fleet.workers.get(lease.instance)
            self._metrics.leases_lost.labels(pool=worker.pool if worker else "unknown").inc()
            message = LoseHolder(at, lease.action_id, lease.attempt, lease.instance, one.reason)
            self._report(Fact(lease.task, message))


def _remembered(data: bytes) -> Worker:
    """A process from its journal row; its announcement is wanted again."""
    said = json.loads(data)
    line = WorkerLine.model_validate(said["line"])
    return Worker(
        instance=line.instance,
        role=line.role,
        pool=line.pool,
        host=line.host,
        pid=line.pid,
        version=line.version,
        slots=line.slots,
        digest="",
        contracts=tuple(parse_contract(one, origin=line.instance) for one in said["contracts"]),
        engines=line.engines,
    )


def _row(worker: Worker | None) -> Row | None:
    if worker is None:
        return None
    line = WorkerLine(
        instance=worker.instance,
        role=worker.role,
        pool=worker.pool,
        host=worker.host,
        pid=worker.pid,
        version=worker.version,
        slots=worker.slots,
        state=str(worker.state),
        heartbeat_at=worker.heartbeat_at,
        running=tuple(f"{one.contract} {one.action_id} {one.note}".strip() for one in worker.running),
        contracts=tuple(document.ref for document in worker.contracts),
        engines=worker.engines,
    )
    documents = [document.model_dump(mode="json") for document in worker.contracts]
    data = {"line": line.model_dump(mode="json"), "contracts": documents}
    return {
        "instance": worker.instance,
        "role": worker.role,
        "pool": worker.pool,
        "host": worker.host,
        "pid": worker.pid,
        "version": worker.version,
        "slots": worker.slots,
        "state": str(worker.state),
        "heartbeat_at": worker.heartbeat_at,
        "data": json.dumps(data).encode(),
    }

"""The roll call: a process announces what it is, says every few seconds that it is here, and says goodbye.

Announcements and the goodbye are durable and confirmed. Heartbeats may be lost; they go out on time whatever else the
process waits for, and carry the digest of the announcement, so that a supervisor that does not know it can ask.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from hashlib import sha256

import structlog

from bus.answers import Answers
from bus.api import Outgoing, PublishTimeoutError
from bus.attempts import AttemptTable
from bus.instance import host_name
from bus.served import RoleSpec
from schemas.contracts import canonical_json
from schemas.errors import BrokerUnreachableError
from schemas.messages import RoleAnnounced, RoleGoodbye, RoleHeartbeat, ServedContract
from schemas.version import VERSION

log = structlog.get_logger()

# A heartbeat that nobody read for this many periods is about a past that no longer helps.
_PERIODS_TO_LIVE = 3


class RoleState(StrEnum):
    """What a process says about itself in its heartbeats."""

    READY = "ready"
    RESTING = "resting"
    DRAINING = "draining"


def announcement_of(spec: RoleSpec) -> RoleAnnounced:
    """What this process announces; the digest covers what is the same for all processes alike."""
    served = tuple(
        ServedContract(
            name=one.name, version=one.version, digest=one.digest, document=one.model_dump(mode="json")
        )
        for one in spec.contracts
    )
    alike = {
        "role": spec.role,
        "pool": spec.pool,
        "version": VERSION,
        "slots": spec.slots,
        "contracts": [one.digest for one in served],
        "engines": dict(spec.engines),
    }
    return RoleAnnounced(
        role=spec.role,
        pool=spec.pool,
        host=host_name(),
        pid=os.getpid(),
        version=VERSION,
        slots=spec.slots,
        contracts=served,
        engines=dict(spec.engines),
        digest=sha256(canonical_json(alike).encode()).hexdigest(),
    )


class RollCall:
    """One process's part in the roll call."""

    def __init__(
        self,
        spec: RoleSpec,
        answers: Answers,
        table: AttemptTable,
        *,
        state: Callable[[], RoleState],
        period_s: float,
    ) -> None:
        self._announcement = announcement_of(spec)
        self._answers = answers
        self._table = table
        self._state = state
        self._period_s = period_s
        self._sequence = 0
        self._announce_wanted = asyncio.Event()

    async def announce(self) -> None:
        """Publish the announcement; returns once it is confirmed, however long that takes."""
        self._announce_wanted.clear()
        await self._answers.publish_surely(self._answers.statement("role.announced", self._announcement))
        log.info(
            "Announced to the supervisor with %d slots.",
            self._announcement.slots,
            action="role_announced",
            pool=self._announcement.pool,
            digest=self._announcement.digest,
        )

    async def want_announcement(self) -> None:
        """Have it announced again soon: after a reconnect, or because the supervisor asked."""
        self._announce_wanted.set()

    async def keep_announcing(self) -> None:
        """Announce whenever it is wanted; runs until cancelled."""
        while True:
            await self._announce_wanted.wait()
            await self.announce()
            await self.beat()

    async def keep_beating(self) -> None:
        """A heartbeat each period, on the clock and not after the last one was sent; runs until cancelled."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            await self.beat()
            due = max(due + self._period_s, loop.time())
            await asyncio.sleep(due - loop.time())

    async def beat(self) -> None:
        """One heartbeat. A broker that is away is not worth a stop: the next one follows.

        Any other error is raised: a bus that has ended (its topology was changed, its rights taken) says so here even
        to a process that has nothing else to publish.
        """
        with suppress(PublishTimeoutError, BrokerUnreachableError, TimeoutError):
            async with asyncio.timeout(self._period_s):
                await self._answers.bus.publish(self._heartbeat())

    async def goodbye(self, reason: str) -> None:
        """Publish that this process leaves, and what it leaves undone; without a connection nobody is told."""
        undone = tuple(one.action.action_id for one in self._table)
        body = RoleGoodbye(pool=self._announcement.pool, reason=reason, running=undone)
        bus = self._answers.bus
        await self._answers.publish_surely(
            self._answers.statement("role.goodbye", body), while_=lambda: bus.is_connected
        )

    def _heartbeat(self) -> Outgoing:
        self._sequence += 1
        body = RoleHeartbeat(
            role=self._announcement.role,
            pool=self._announcement.pool,
            host=self._announcement.host,
            pid=self._announcement.pid,
            slots=self._announcement.slots,
            state=self._state(),
            sequence=self._sequence,
            running=self._table.running(),
            pulse=self._table.pulse,
            announcement=self._announcement.digest,
        )
        return self._answers.beat(
            "role.heartbeat", body, ttl_ms=int(self._period_s * 1_000 * _PERIODS_TO_LIVE)
        )

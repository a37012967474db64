"""What a role process says: envelopes that keep the thread of their cause, and publishes that do not give up.

An answer keeps the correlation id, lane, attempt and traceparent of the message it answers, and names it as its cause.
A publish that was not confirmed is made again with the same envelope, since it may have landed: receivers know it by
its message id.
"""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from pydantic import BaseModel

from bus.api import Bus, Exchange, Outgoing, TopologyMismatchError
from bus.metrics import Metrics
from schemas import clock
from schemas.envelope import Envelope, Sender
from schemas.errors import ContractError, RolecallError

log = structlog.get_logger()

# Between tries to publish, doubled up to the longest and jittered, so that a fleet does not come back in step.
FIRST_RETRY_S = 0.2
LONGEST_RETRY_S = 5.0


@dataclass(frozen=True, slots=True)
class Answers:
    """Builds and publishes the messages of one process."""

    bus: Bus
    sender: Sender
    metrics: Metrics
    process_id: str
    now_us: Callable[[], int] = clock.now_us

    def reply(self, cause: Envelope, kind: str, body: BaseModel) -> Outgoing:
        """An event that answers the message `cause`."""
        return self._event(
            Envelope(
                environment=self.bus.environment,
                message_id=clock.new_id(),
                correlation_id=cause.correlation_id,
                causation_id=cause.message_id,
                kind=kind,
                sender=self.sender,
                created_at=self.now_us(),
                attempt=cause.attempt,
                lane=cause.lane,
                traceparent=cause.traceparent,
                body=body.model_dump(),
            )
        )

    def statement(self, kind: str, body: BaseModel) -> Outgoing:
        """An event about this process itself; all of them share the process's id as their correlation."""
        return self._event(self._own(kind, body, ttl_ms=None))

    def beat(self, kind: str, body: BaseModel, *, ttl_ms: int) -> Outgoing:
        """A heartbeat: it may be lost, and is worth nothing once it is old."""
        return Outgoing(Exchange.HEARTBEAT, self._key(kind), self._own(kind, body, ttl_ms=ttl_ms))

    async def publish(self, outgoing: Outgoing) -> None:
        """Publish once, measured. Raises what the bus raises."""
        begun = time.monotonic()
        try:
            await self.bus.publish(outgoing)
        except RolecallError:
            self.metrics.publish_failures.labels(outgoing.exchange).inc()
            raise
        self.metrics.publish_seconds.labels(outgoing.exchange).observe(time.monotonic() - begun)

    async def publish_surely(self, outgoing: Outgoing, *, while_: Callable[[], bool] = lambda: True) -> bool:
        """Publish the same envelope until it is confirmed, or until `while_` is false; says whether it was confirmed.

        Raises at once what never gets better: ContractError (the codec refuses it), TopologyMismatchError.
        """
        pause_s = FIRST_RETRY_S
        while while_():
            try:
                await self.publish(outgoing)
            except (ContractError, TopologyMismatchError):
                raise
            except RolecallError as error:
                log.warning(
                    "The broker did not confirm %s; trying again.",
                    outgoing.envelope.kind,
                    action="publish_retried",
                    error=str(error),
                    **ids_of(outgoing.envelope),
                )
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
                pause_s = min(pause_s * 2, LONGEST_RETRY_S)
            else:
                return True
        return False

    def _own(self, kind: str, body: BaseModel, *, ttl_ms: int | None) -> Envelope:
        return Envelope(
            environment=self.bus.environment,
            message_id=clock.new_id(),
            correlation_id=self.process_id,
            kind=kind,
            sender=self.sender,
            created_at=self.now_us(),
            ttl_ms=ttl_ms,
            body=body.model_dump(),
        )

    def _event(self, envelope: Envelope) -> Outgoing:
        return Outgoing(Exchange.EVENTS, self._key(envelope.kind), envelope)

    def _key(self, kind: str) -> str:
        return f"{kind}.{self.sender.role}"


def ids_of(envelope: Envelope) -> dict[str, object]:
    """The ids that a log line about this message carries."""
    return {
        "task": envelope.correlation_id,
        "message": envelope.message_id,
        "kind": envelope.kind,
        "attempt": envelope.attempt,
        "lane": str(envelope.lane),
    }

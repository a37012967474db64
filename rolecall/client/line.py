"""The client's line to the bus: says what a user wants, under the id of the task."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import BaseModel

from bus.api import Bus, Exchange, Outgoing
from bus.instance import instance_name
from bus.settings import Settings
from schemas.clock import new_id, now_us
from schemas.envelope import Envelope, Sender
from schemas.version import VERSION

ROLE = "client"


@dataclass(frozen=True, slots=True)
class Line:
    """A connected bus, and who speaks on it."""

    bus: Bus
    sender: Sender

    async def say(self, kind: str, body: BaseModel, task: str) -> None:
        """Publish a command; returns once it is durable, whether or not a supervisor runs."""
        envelope = Envelope(
            environment=self.bus.environment,
            message_id=new_id(),
            correlation_id=task,
            kind=kind,
            sender=self.sender,
            created_at=now_us(),
            body=body.model_dump(mode="json"),
        )
        await self.bus.publish(Outgoing(Exchange.EVENTS, f"{kind}.{ROLE}", envelope))


def line_on(bus: Bus, instance: str | None = None) -> Line:
    """A line on a bus that is started elsewhere."""
    return Line(bus, Sender(role=ROLE, instance=instance or instance_name(ROLE), version=VERSION))


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[Line]:
    """A line over RabbitMQ. Raises SettingsError (no broker is known) or BrokerUnreachableError."""
    from bus.amqp import AmqpBus

    instance = instance_name(ROLE)
    bus = AmqpBus(settings.environment, settings.broker_urls, instance=instance)
    try:
        await bus.start()
        yield line_on(bus, instance)
    finally:
        await bus.close()

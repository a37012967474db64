"""The bus over RabbitMQ.

bus         AmqpBus: what the rest of Rolecall sees
session     the two connections of a process, and what is said when there are none
declare     topology onto the broker, and what is said when it is there but different
publish     confirmed, mandatory, within a time limit; or fire and forget
properties  envelopes mirrored into AMQP properties
stream      a channel that deliveries come through, and the one place that acknowledges
consume     a subscription that outlives channels and connections
"""

from bus.amqp.bus import AmqpBus

__all__ = ["AmqpBus"]

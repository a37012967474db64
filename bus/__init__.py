"""The message bus: envelopes, topology, RabbitMQ and memory transports, and the runtime of a role process."""

"""What a process measures about itself, and the Prometheus endpoint that shows it on request.

One `Metrics` per process, handed to whoever measures. Labels are words from closed sets or contract names out of
verified grants, never free text from a message, so that no sender can grow the number of series.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    start_http_server,
)

from schemas.errors import SettingsError

# Seconds. Bus times are mostly below 10 ms, work takes from milliseconds to hours.
_BUS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_WAIT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300)
_WORK_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1800, 7200)


class Metrics:
    """The measures of DESIGN §10 that exist by now; a process uses those it has."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.publish_seconds = Histogram(
            "rolecall_publish_seconds",
            "From publish to the broker's confirm.",
            ["exchange"],
            buckets=_BUS_BUCKETS,
            registry=self.registry,
        )
        self.publish_failures = Counter(
            "rolecall_publish_failures_total",
            "Publishes that were not confirmed.",
            ["exchange"],
            registry=self.registry,
        )
        self.queue_wait_seconds = Histogram(
            "rolecall_queue_wait_seconds",
            "From the work message's birth to its arrival at a worker (two clocks).",
            ["contract"],
            buckets=_WAIT_BUCKETS,
            registry=self.registry,
        )
        self.start_seconds = Histogram(
            "rolecall_dequeue_to_start_seconds",
            "From arrival at a worker to the start of the work.",
            ["contract"],
            buckets=_BUS_BUCKETS,
            registry=self.registry,
        )
        self.attempts = Counter(
            "rolecall_attempts_total",
            "Attempts that ended, by outcome.",
            ["contract", "outcome"],
            registry=self.registry,
        )
        self.attempt_seconds = Histogram(
            "rolecall_attempt_seconds",
            "How long the work of an attempt took.",
            ["contract"],
            buckets=_WORK_BUCKETS,
            registry=self.registry,
        )
        self.slots = Gauge(
            "rolecall_slots", "Actions that this process can run at once.", ["pool"], registry=self.registry
        )
        self.slots_busy = Gauge(
            "rolecall_slots_busy", "Slots that are taken.", ["pool"], registry=self.registry
        )
        self.handoffs_waiting = Gauge(
            "rolecall_handoffs_waiting",
            "Handoffs that the broker has not confirmed yet.",
            ["pool"],
            registry=self.registry,
        )
        self.leases_lost = Counter(
            "rolecall_leases_lost_total",
            "Attempts that all their holders lost.",
            ["pool"],
            registry=self.registry,
        )
        self.dead_letters = Counter(
            "rolecall_dead_letters_total",
            "Messages set aside, by the kind of reason.",
            ["reason"],
            registry=self.registry,
        )
        self.tokens = Counter(
            "rolecall_tokens_total", "Model tokens used.", ["contract", "direction"], registry=self.registry
        )
        self.spend = Counter(
            "rolecall_spend_dollars_total", "Model spend.", ["contract"], registry=self.registry
        )


@contextmanager
def metrics_endpoint(metrics: Metrics, port: int) -> Iterator[int]:
    """Serve the measures at http://127.0.0.1:<port>/metrics (0: any free port); yields the port."""
    try:
        server, thread = start_http_server(port, addr="127.0.0.1", registry=metrics.registry)
    except OSError as error:
        raise SettingsError(
            f"The metrics port 127.0.0.1:{port} cannot be used: {error.strerror}.",
            suggestion="Choose another with --metrics-port or ROLECALL_METRICS_PORT, 0 for any.",
        ) from error
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)

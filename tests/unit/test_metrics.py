"""The measures of a process and the endpoint that shows them."""

import socket
from urllib.request import urlopen

import pytest

from bus.metrics import Metrics, metrics_endpoint
from schemas.errors import SettingsError


def test_the_endpoint_shows_what_was_measured() -> None:
    metrics = Metrics()
    metrics.attempts.labels("rewrite.pattern@1", "done").inc()
    metrics.queue_wait_seconds.labels("rewrite.pattern@1").observe(0.2)

    with (
        metrics_endpoint(metrics, 0) as port,
        urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer,
    ):
        text = answer.read().decode()

    assert 'rolecall_attempts_total{contract="rewrite.pattern@1",outcome="done"} 1.0' in text
    assert 'rolecall_queue_wait_seconds_count{contract="rewrite.pattern@1"} 1.0' in text
    assert "process_resident_memory_bytes" in text


def test_a_port_that_is_taken_is_refused_with_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()

        with (
            pytest.raises(SettingsError, match="--metrics-port"),
            metrics_endpoint(Metrics(), taken.getsockname()[1]),
        ):
            pass


def test_two_processes_measures_do_not_mix() -> None:
    one, other = Metrics(), Metrics()

    one.leases_lost.labels("executor").inc()

    assert one.registry.get_sample_value("rolecall_leases_lost_total", {"pool": "executor"}) == 1.0
    assert other.registry.get_sample_value("rolecall_leases_lost_total", {"pool": "executor"}) is None

"""The message bus: envelopes, topology, RabbitMQ and memory transports, and the runtime of a role process."""

import importlib
import sys


def _import_structlog_alone() -> None:
    """structlog imports rich where it finds it, for tracebacks that our logs do not print: 6 MB in every process."""
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # the import system takes None as "not there"
    try:
        importlib.import_module("structlog")
    finally:
        del sys.modules["rich"]


# The one thing here that happens at import: it must come before any other import of structlog.
_import_structlog_alone()

"""Which process is this: the instance name that goes into every message, and whether a process still lives.

A pid alone names nobody, since numbers are used again; pid and start time together do.
"""

import os
import re
import socket

import psutil

# psutil derives start times from the boot time, which moves a little when the clock is set.
_START_TOLERANCE_US = 2_000_000


def instance_name(part: str = "") -> str:
    """`host-pid-start` of this process, fit for a routing key; `part` tells several roles of one process apart."""
    host = re.sub(r"[^A-Za-z0-9_-]", "_", socket.gethostname())[:100] or "host"
    start = (started_us(os.getpid()) or 0) // 1_000_000
    name = f"{host}-{os.getpid()}-{start}"
    return f"{name}-{part}" if part else name


def host_name() -> str:
    """This machine's name, as people know it."""
    return socket.gethostname() or "host"


def started_us(pid: int) -> int | None:
    """When the process started, in microseconds UTC; None if there is none (a zombie counts as none)."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return int(process.create_time() * 1_000_000)
    except (psutil.NoSuchProcess, psutil.AccessDenied, ValueError):
        return None


def is_alive(pid: int, start_us: int) -> bool:
    """True if the process with this pid is the one that started then."""
    found = started_us(pid)
    return found is not None and abs(found - start_us) <= _START_TOLERANCE_US

"""Started before every job: takes on its limits, then becomes the job. Runs alone (`python -I -S launcher.py`).

It imports nothing of ours, because it starts in ten milliseconds that way, and because what comes after it is not ours.
"""

import ctypes
import json
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
CANNOT_RUN = "launcher: cannot run "


def main() -> None:
    """argv: an order (JSON: cgroups to join, limits by name, the parent's pid), then the command."""
    order = json.loads(sys.argv[1])
    command = sys.argv[2:]
    for file in order["cgroups"]:
        with open(file, "w", encoding="ascii") as procs:  # noqa: PTH123 - one import less
            procs.write("0")
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != order["parent"]:
        sys.exit(1)
    for name, (soft, hard) in order["limits"].items():
        kind = getattr(resource, name)
        _, most = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(kind, (soft, hard))
    try:
        os.execv(command[0], command)
    except OSError as error:
        print(f"{CANNOT_RUN}{command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201 - the job's own output
        sys.exit(127)


if __name__ == "__main__":
    main()

"""`python -m benchmarks`, `make bench`: every measurement, one after the other, each in a process of its own."""

import subprocess
import sys

MODULES = ("benchmarks.start", "benchmarks.bus", "benchmarks.control_plane", "benchmarks.refactor")


def main() -> int:
    """Run them all; 1 if any limit was not kept."""
    codes = [subprocess.run([sys.executable, "-m", module], check=False).returncode for module in MODULES]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())

"""Tools of our own installation (ruff), run as a plain process: they read foreign files but run no foreign code.

What runs foreign code goes through the sandbox instead.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import WorkspaceError

# The tools we run answer in seconds; this only ends one that hangs.
TOOL_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class ToolResult:
    """How a tool ended and what it wrote."""

    exit_code: int
    stdout: bytes
    stderr: str


def run_tool(
    command: Sequence[str | Path], *, cwd: Path, stdin: bytes = b"", limit_s: float = TOOL_LIMIT_S
) -> ToolResult:
    """Run a tool in a folder, with an environment built from nothing: no settings of the user reach it.

    Raises WorkspaceError if it cannot be started or does not end.
    """
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LD_LIBRARY_PATH") if name in os.environ}
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            [str(word) for word in command],
            input=stdin,
            capture_output=True,
            cwd=cwd,
            env=kept | {"LC_ALL": "C.UTF-8", "HOME": str(cwd), "XDG_CONFIG_HOME": str(cwd / ".nothing")},
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise WorkspaceError(f"{name} did not end within {limit_s:.0f} s and was killed.") from error
    except OSError as error:
        raise WorkspaceError(f"{name} cannot be started: {error.strerror}.") from error
    return ToolResult(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


def installed_tool(name: str) -> Path:
    """The program of a package of our own installation, beside its Python. Raises WorkspaceError if it is not there."""
    place = Path(sysconfig.get_path("scripts")) / name
    if not place.is_file():
        raise WorkspaceError(
            f"{name} is not installed beside {Path(sys.executable).name}.",
            suggestion="Install Rolecall again.",
        )
    return place

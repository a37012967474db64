"""How a child process of a role is started: which Python, which import path; and a trial before it is needed."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from schemas.errors import RolecallError, SettingsError

# The current folder is the user's, and what lies in it must not be imported for ours.
PYTHON = (sys.executable, "-P")
# Loading a role takes a second or two; this only ends one that hangs.
_TRIAL_LIMIT_S = 120.0
_LAST_LINES = 5


def child_environment() -> dict[str, str]:
    """Ours without our settings: a child learns what it needs over its channel, and no secret besides.

    Our own folder is named on the import path: an editable install may be known to a hook only, and the hook is asked
    after every folder.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROLECALL_")}
    folders = [folder or str(Path.cwd()) for folder in sys.path]
    ours = str(Path(__file__).resolve().parents[1])
    if ours not in folders:
        folders.insert(0, ours)
    return kept | {"PYTHONPATH": os.pathsep.join(folders)}


def try_in_child(work: str, *words: str) -> None:
    """Call `module:function` with these words in a process that is started as the children are.

    Raises SettingsError if that fails there, with what it said: better now than with the first action.
    """
    try:
        done = subprocess.run(
            [*PYTHON, "-m", "workspace.child_start", work, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=child_environment(),
            timeout=_TRIAL_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SettingsError(
            f"Loading it in a worker process did not end within {_TRIAL_LIMIT_S:g} s."
        ) from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()[-_LAST_LINES:]
        said = "\n".join(lines) or f"it ended with exit code {done.returncode}"
        raise SettingsError(f"It cannot be loaded in a worker process: {said}")


def main(arguments: list[str]) -> int:
    """The trial, in the child."""
    work, *words = arguments
    module, _, function = work.partition(":")
    try:
        getattr(import_module(module), function)(*words)
    except RolecallError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

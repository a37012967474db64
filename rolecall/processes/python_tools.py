"""pip and virtual environments, run with our own interpreter."""

import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path

from schemas.errors import SettingsError

# A slow line and a cold cache; pip itself gives up on a dead one earlier.
LIMIT_S = 600.0
_LAST_LINES = 6
_STAMP = ".rolecall-requirements"


def pip(*words: str, python: str = sys.executable) -> None:
    """Run pip. Raises SettingsError with the end of what it said, and what that usually means."""
    command = (python, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", *words)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise SettingsError(f"pip did not end within {LIMIT_S:g} s.", suggestion=_OFFLINE) from error
    if done.returncode != 0:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()][-_LAST_LINES:]
        raise SettingsError("pip failed:\n  " + "\n  ".join(said), suggestion=f"\n{_OFFLINE}")


_OFFLINE = (
    "Is this machine offline? This needs a package index once; afterwards it works without. "
    "PIP_INDEX_URL names another one."
)


def made_environment(folder: Path, requirements: tuple[str, ...]) -> Path:
    """A virtual environment with these packages, made unless it is there."""
    wanted = sha256("\n".join((sys.version, *requirements)).encode()).hexdigest()
    stamp = folder / _STAMP
    if stamp.exists() and stamp.read_text("ascii") == wanted:
        return folder
    venv.EnvBuilder(clear=True, with_pip=True, symlinks=True).create(folder)
    pip("install", *requirements, python=str(folder / "bin" / "python"))
    stamp.write_text(wanted, "ascii")
    return folder

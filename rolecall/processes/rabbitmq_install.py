"""Finds RabbitMQ on this machine, and makes a lean view of it that starts in half the time.

The system's wrapper in /usr/sbin switches to another user, so the real script is looked for. A start spends most of
its time looking for modules in the folders of some seventy plugins that we do not use: the lean view has links to the
broker's own applications only. It holds nothing but links, and is made anew for each start.
"""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import SettingsError

# Time to live and at-least-once dead-lettering of quorum queues came with this release.
OLDEST_VERSION = (3, 10)

_PLACES = (
    "/usr/lib/rabbitmq/bin/rabbitmq-server",
    "/usr/lib64/rabbitmq/bin/rabbitmq-server",
    "/opt/rabbitmq/sbin/rabbitmq-server",
    "/opt/homebrew/opt/rabbitmq/sbin/rabbitmq-server",
    "/usr/local/opt/rabbitmq/sbin/rabbitmq-server",
)
_HOW_TO_INSTALL = (
    "Install it (Debian, Ubuntu: `apt-get install rabbitmq-server`; macOS: `brew install rabbitmq`), "
    "or give a broker with --broker or ROLECALL_BROKER_URL."
)


@dataclass(frozen=True, slots=True)
class RabbitInstall:
    """An installed RabbitMQ: its start script, its home folder, and its version as far as that is known."""

    script: Path
    home: Path
    version: tuple[int, ...]


def find_rabbitmq() -> RabbitInstall | None:
    """The RabbitMQ of this machine, or None."""
    for script in _candidates():
        if not script.is_file():
            continue
        # Packages link the script from elsewhere; everything else lies beside the real one.
        real = script.resolve()
        home = real.parent.parent
        if real.name == "rabbitmq-server" and (home / "plugins").is_dir():
            return RabbitInstall(real, home, _version(home))
    return None


def need_rabbitmq() -> RabbitInstall:
    """The RabbitMQ of this machine. Raises SettingsError that says how to get one."""
    install = find_rabbitmq()
    if install is None:
        raise SettingsError("rabbitmq-server is not installed on this machine.", suggestion=_HOW_TO_INSTALL)
    if install.version and install.version < OLDEST_VERSION:
        found = ".".join(map(str, install.version))
        raise SettingsError(
            f"RabbitMQ {found} at {install.home} is too old; 3.10 or newer is needed.",
            suggestion=_HOW_TO_INSTALL,
        )
    return install


def lean_view(install: RabbitInstall, folder: Path) -> Path | None:
    """Make the lean view in `folder`; returns its scripts folder, or None where it cannot be made."""
    applications = _closure(install.home / "plugins", "rabbit")
    # RabbitMQ's own scripts do not quote the paths they are given.
    if not {"rabbit", "rabbit_common", "rabbitmq_prelaunch"} <= set(applications) or re.search(
        r"\s", str(folder)
    ):
        return None
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "plugins").mkdir(parents=True)
    for application in applications.values():
        (folder / "plugins" / application.name).symlink_to(application)
    for name in ("sbin", "escript"):
        (folder / name).symlink_to(install.home / name)
    return folder / "sbin"


def _candidates() -> Iterator[Path]:
    yield from map(Path, _PLACES)
    on_path = shutil.which("rabbitmq-server")
    if on_path is not None:
        yield Path(on_path)


def _version(home: Path) -> tuple[int, ...]:
    for folder in home.glob("plugins/rabbit-[0-9]*"):
        numbers = re.match(r"rabbit-([0-9]+)\.([0-9]+)\.([0-9]+)", folder.name)
        if numbers:
            return tuple(map(int, numbers.groups()))
    return ()


def _closure(plugins: Path, root: str) -> dict[str, Path]:
    """The application and all it needs that lies in `plugins`, by name; Erlang's own applications lie elsewhere."""
    folders = {folder.name.rpartition("-")[0]: folder for folder in plugins.iterdir() if folder.is_dir()}
    found: dict[str, Path] = {}
    wanted = [root]
    while wanted:
        name = wanted.pop()
        if name in found or name not in folders:
            continue
        found[name] = folders[name]
        wanted += _needs(folders[name] / "ebin" / f"{name}.app")
    return found


def _needs(application_file: Path) -> list[str]:
    try:
        text = application_file.read_text("utf-8", "replace")
    except OSError:
        return []
    return [
        name
        for names in re.findall(r"(?:included_|optional_)?applications\s*,\s*\[(.*?)\]", text, re.DOTALL)
        for name in re.findall(r"[a-z][a-z0-9_]*", names)
    ]

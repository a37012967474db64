"""Settings: the one place that reads the environment, and the options that every role's command has.

Each value comes from the first place that gives it: an option, an environment variable, the connection file of the
running stack, the default. A broker that was named counts alone: hub and key of another stack are never mixed in.
"""

import argparse
import getpass
import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from bus.connection_file import Connection, live_connection
from bus.grants import PUBLIC_KEY_BYTES
from schemas.errors import SettingsError
from schemas.suggest import nearest

LOG_LEVELS = ("debug", "info", "warning", "error")
# One pool's work at once per process; a machine with more to give says so.
DEFAULT_SLOTS = 1
# Longer than most actions take, shorter than what a person waits for after Ctrl-C.
DEFAULT_DRAIN_S = 30.0

_ENVIRONMENT_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")


class Sandbox(StrEnum):
    """What stands between the repository's own code and this machine."""

    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Settings:
    """What every process of ours needs to know. `broker_url` may list several, separated by commas.

    `public_key_file` is where a supervisor publishes its key for roles that share a folder with it.
    """

    environment: str
    state_dir: Path
    broker_url: str | None = field(default=None, repr=False)
    hub: str | None = None
    public_key: bytes | None = None
    public_key_file: Path | None = None
    sandbox: Sandbox = Sandbox.BUBBLEWRAP
    log_level: str = "info"
    metrics_port: int | None = None

    @property
    def broker_urls(self) -> tuple[str, ...]:
        """The broker's addresses, in the order to try. Raises SettingsError if there is none."""
        if not self.broker_url:
            raise SettingsError(
                f"No broker is known for environment {self.environment!r}, and no `rolecall up` of it runs.",
                suggestion="Start `rolecall up`, or name one with --broker or ROLECALL_BROKER_URL.",
            )
        return tuple(url for url in re.split(r"[,\s]+", self.broker_url) if url)

    @property
    def hub_place(self) -> str:
        """The hub's path or URL. Raises SettingsError if there is none."""
        if not self.hub:
            raise SettingsError(
                "No hub is known: the git repository that carries snapshots between processes.",
                suggestion="Name it with --hub or ROLECALL_HUB, as `rolecall up` printed it.",
            )
        return self.hub

    @property
    def supervisor_key(self) -> bytes:
        """What grants are checked with. Raises SettingsError if there is none."""
        if self.public_key is None:
            raise SettingsError(
                "The supervisor's public key is not known, so no grant can be checked.",
                suggestion="Give it with --public-key or ROLECALL_PUBLIC_KEY, as `rolecall up` printed it.",
            )
        return self.public_key


@dataclass(frozen=True, slots=True)
class RoleSettings(Settings):
    """The settings of one role process.

    `wait_for_broker_s` is how long an unreachable broker is waited for at the start, `drain_s` how long what runs may
    finish at the end. With `parent_pid` the process leaves when that process is gone.
    """

    role: str = ""
    slots: int = DEFAULT_SLOTS
    parent_pid: int | None = None
    wait_for_broker_s: float = 0.0
    drain_s: float = DEFAULT_DRAIN_S


def load_settings(
    environ: Mapping[str, str] | None = None,
    *,
    environment: str | None = None,
    broker_url: str | None = None,
    hub: str | None = None,
    public_key: str | None = None,
    sandbox: str | None = None,
    log_level: str | None = None,
    metrics_port: int | str | None = None,
) -> Settings:
    """Settings from options (None: not given), the environment and the connection file. Raises SettingsError."""
    given = os.environ if environ is None else environ
    name = _environment_name(environment or given.get("ROLECALL_ENVIRONMENT"))
    state_dir = _state_dir(given, name)
    url = broker_url or given.get("ROLECALL_BROKER_URL")
    found = _connection(state_dir, url)
    port = metrics_port if metrics_port is not None else given.get("ROLECALL_METRICS_PORT")
    return Settings(
        environment=name,
        state_dir=state_dir,
        broker_url=url or (found.broker_url if found else None),
        hub=hub or given.get("ROLECALL_HUB") or (found.hub if found else None),
        public_key=_public_key(
            public_key
            or given.get("ROLECALL_PUBLIC_KEY")
            or _published_key(given)
            or (found.public_key if found else None)
        ),
        public_key_file=_public_key_file(given),
        sandbox=Sandbox(
            _one_of("sandbox", sandbox or given.get("ROLECALL_SANDBOX") or "bubblewrap", tuple(Sandbox))
        ),
        log_level=_one_of(
            "log level", (log_level or given.get("ROLECALL_LOG_LEVEL") or "info").lower(), LOG_LEVELS
        ),
        metrics_port=None if port in (None, "") else _port(port),
    )


def role_settings(
    role: str, argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None
) -> RoleSettings:
    """The settings of `python -m <role>`: parses its options; ends the process with a usage text if they are wrong."""
    options = role_parser(role).parse_args(argv)
    base = load_settings(
        environ,
        environment=options.environment,
        broker_url=options.broker,
        hub=options.hub,
        public_key=options.public_key,
        sandbox=options.sandbox,
        log_level=options.log_level,
        metrics_port=options.metrics_port,
    )
    return RoleSettings(
        **{name: getattr(base, name) for name in Settings.__dataclass_fields__},
        role=role,
        slots=options.slots,
        parent_pid=options.parent_pid,
        wait_for_broker_s=options.wait_for_broker,
        drain_s=options.drain_limit,
    )


def role_parser(role: str) -> argparse.ArgumentParser:
    """The options that every role has; a role with more adds its own."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {role}",
        description=f"The {role} of Rolecall: takes work from the bus until it is told to stop.",
        epilog="Exit codes: 0 drained, 1 stopped at once or failed, 2 usage, 6 broker unreachable.",
    )
    parser.add_argument("--environment", metavar="NAME", help="whose queues and state (ROLECALL_ENVIRONMENT)")
    parser.add_argument(
        "--broker", metavar="URL", help="RabbitMQ; a password is better put in ROLECALL_BROKER_URL"
    )
    parser.add_argument(
        "--hub", metavar="PATH|URL", help="the git repository that carries snapshots (ROLECALL_HUB)"
    )
    parser.add_argument("--public-key", metavar="HEX", help="the supervisor's key (ROLECALL_PUBLIC_KEY)")
    parser.add_argument(
        "--slots", type=_count, default=DEFAULT_SLOTS, metavar="N", help="actions at once (%(default)s)"
    )
    parser.add_argument("--sandbox", choices=[*Sandbox], help="ROLECALL_SANDBOX")
    parser.add_argument("--log-level", choices=LOG_LEVELS, help="ROLECALL_LOG_LEVEL")
    parser.add_argument(
        "--metrics-port", type=int, metavar="PORT", help="serve Prometheus measures on 127.0.0.1"
    )
    parser.add_argument("--parent-pid", type=_count, metavar="PID", help="leave when this process is gone")
    parser.add_argument(
        "--wait-for-broker",
        type=_seconds,
        default=0.0,
        metavar="S",
        help="how long to try at the start (%(default)s)",
    )
    parser.add_argument(
        "--drain-limit",
        type=_seconds,
        default=DEFAULT_DRAIN_S,
        metavar="S",
        help="time for what runs to finish (%(default)s)",
    )
    return parser


def _environment_name(given: str | None) -> str:
    if given is None or given == "":
        user_and_host = f"{_user()}-{socket.gethostname().split('.')[0]}"
        return re.sub(r"[^A-Za-z0-9-]+", "-", user_and_host).strip("-")[:64] or "local"
    if not _ENVIRONMENT_NAME.match(given):
        raise SettingsError(
            f"{given!r} cannot be the name of an environment.",
            suggestion="Use letters, digits, `-` and `_`, up to 64, starting with a letter or digit.",
        )
    return given


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for this uid, as in a container
        return str(os.getuid())


def _state_dir(given: Mapping[str, str], environment: str) -> Path:
    # The XDG specification: a relative path there is invalid and counts as not set.
    home = Path(given.get("XDG_STATE_HOME", ""))
    base = home if home.is_absolute() else Path(given.get("HOME") or Path.home()) / ".local" / "state"
    return base / "rolecall" / environment


def _connection(state_dir: Path, url: str | None) -> Connection | None:
    found = live_connection(state_dir)
    return found if found is not None and url in (None, "", found.broker_url) else None


def _public_key(given: str | None) -> bytes | None:
    if not given:
        return None
    try:
        key = bytes.fromhex(given)
    except ValueError:
        key = b""
    if len(key) != PUBLIC_KEY_BYTES:
        raise SettingsError(
            "The public key is not one: it must be 64 hexadecimal digits.",
            suggestion="Copy it whole, as `rolecall up` printed it.",
        )
    return key


def _public_key_file(given: Mapping[str, str]) -> Path | None:
    place = given.get("ROLECALL_PUBLIC_KEY_FILE")
    return Path(place) if place else None


def _published_key(given: Mapping[str, str]) -> str | None:
    """The key that a supervisor published; None before it has."""
    place = _public_key_file(given)
    try:
        return place.read_text("ascii").strip() if place is not None else None
    except (OSError, ValueError):
        return None


def _one_of(subject: str, word: str, known: Sequence[str]) -> str:
    if word in known:
        return word
    hint = nearest(word, known)
    meant = f"Did you mean {hint!r}?" if hint else ""
    raise SettingsError(f"{word!r} is no {subject}; there are {', '.join(known)}.", suggestion=meant)


def _port(given: int | str) -> int:
    try:
        port = int(given)
    except ValueError:
        port = -1
    if not 0 <= port <= 65535:
        raise SettingsError(f"{given!r} is no port.", suggestion="Give 0 (any free one) to 65535.")
    return port


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds, 0 or more, not {text!r}")
    return seconds


def active_virtual_env(environ: Mapping[str, str] | None = None) -> str | None:
    """The virtual environment that is active in the user's shell; our own is not meant for their tests."""
    active = (os.environ if environ is None else environ).get("VIRTUAL_ENV")
    return active if active and Path(active).resolve() != Path(sys.prefix).resolve() else None

"""The folder of a private RabbitMQ node: what the node is told, and what is remembered of it.

    secrets.json     cookie and password, made once; they live and die with `data`
    node.json        ports, and the process that was started last
    rabbitmq.conf …  written anew for each start
    rabbitmqctl      the broker's own tool, set up for this node
    data/ log/ lean/ the node's own
    lock             held by whoever starts the node, and then by the node (see `private_node`)

Everything is owner-only. The node listens on 127.0.0.1 alone, and there is no epmd: with its distribution port given,
Erlang neither starts nor asks one. Nothing of the system's RabbitMQ configuration is read.
"""

import os
import secrets
import shlex
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from bus.owner_only import make_folder, read_owner_only, write_owner_only
from schemas.base import Tolerant
from schemas.errors import SettingsError

NODE_NAME = "rolecall@localhost"
USER = "rolecall"
HOST = "127.0.0.1"

# The write-ahead log of quorum queues is rolled at this size; the default of 512 MB is for servers.
_WAL_BYTES = 64_000_000

# Seen on 3.10: when the node is killed within half a second of a quorum queue's declaration, that queue comes back
# without a leader, and nobody can consume from it or publish to it, ever. An election in a cluster of one is safe.
# RabbitMQ's script splits its arguments at blanks, so there are none.
_WAKE_QUEUES = (
    "-eval spawn(fun()->rabbit:await_startup(),"
    "[ra:trigger_election(P,5000)||Q<-rabbit_amqqueue:list(),"
    "amqqueue:get_type(Q)=:=rabbit_quorum_queue,P<-[amqqueue:get_pid(Q)],"
    "ra_leaderboard:lookup_leader(element(1,P))=:=undefined]end)."
)


class Secrets(Tolerant):
    """What lets one into the node: Erlang's cookie and the broker's password."""

    cookie: str = Field(repr=False)
    password: str = Field(repr=False)


class NodeRecord(Tolerant):
    """The ports, and the process (`started_at` is microseconds UTC, see `bus.instance`) once there is one."""

    amqp_port: int
    distribution_port: int
    pid: int | None = None
    started_at: int | None = None


@dataclass(frozen=True, slots=True)
class NodeFolder:
    """Reads and writes the folder."""

    path: Path

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def rabbitmqctl(self) -> Path:
        return self.path / "rabbitmqctl"

    @property
    def console(self) -> Path:
        """What the node prints before its log is open, and when it cannot start."""
        return self.path / "log" / "console.log"

    def prepare(self) -> None:
        """Create the folder. Raises SettingsError if others could write in it."""
        make_folder(self.path)
        for name in ("data", "log"):
            make_folder(self.path / name)

    def secrets(self) -> Secrets:
        """The secrets, made on first use. Raises SettingsError if they were lost while the data was kept."""
        file = self.path / "secrets.json"
        try:
            return Secrets.model_validate_json(read_owner_only(file))
        except FileNotFoundError:
            pass
        except ValidationError as error:
            raise self._unusable(file) from error
        if any((self.path / "data").iterdir()):
            raise self._unusable(file)
        made = Secrets(cookie=secrets.token_hex(24), password=secrets.token_hex(24))
        write_owner_only(file, made.model_dump_json().encode())
        return made

    def record(self) -> NodeRecord | None:
        """What is remembered of the node; None if nothing (readable) is."""
        try:
            return NodeRecord.model_validate_json(read_owner_only(self.path / "node.json"))
        except (FileNotFoundError, ValidationError):
            return None

    def remember(self, record: NodeRecord) -> None:
        write_owner_only(self.path / "node.json", record.model_dump_json().encode())

    def url(self, record: NodeRecord) -> str:
        """Where clients connect, with the password."""
        return f"amqp://{USER}:{self.secrets().password}@{HOST}:{record.amqp_port}/"

    def configure(self, record: NodeRecord, scripts: Path, *, is_lean: bool) -> dict[str, str]:
        """Write the node's configuration; returns its whole environment. `scripts` is where RabbitMQ's scripts lie."""
        own = self.secrets()
        home = make_folder(self.path / "home")
        cookie = home / ".erlang.cookie"
        write_owner_only(cookie, own.cookie.encode())
        cookie.chmod(0o400)
        self._write(
            "rabbitmq.conf",
            f"listeners.tcp.1 = {HOST}:{record.amqp_port}",
            f"default_user = {USER}",
            f"default_pass = {own.password}",
            "log.console = false",
            "log.file = rabbitmq.log",
            "log.file.level = warning",
            "log.connection.level = error",  # every check for life would be a warning
            "log.file.rotation.size = 10485760",
            "log.file.rotation.count = 2",
            f"raft.wal_max_size_bytes = {_WAL_BYTES}",
        )
        self._write("advanced.config", "[].")
        self._write("enabled_plugins", "[].")
        self._write("rabbitmq-env.conf")
        common = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": str(home),
            "RABBITMQ_NODENAME": NODE_NAME,
            "RABBITMQ_CONF_ENV_FILE": str(self.path / "rabbitmq-env.conf"),
        }
        # Without an epmd to ask, both sides are told the port.
        distribution = f"-start_epmd false -erl_epmd_port {record.distribution_port}"
        ctl = common | {"RABBITMQ_CTL_ERL_ARGS": f"-dist_listen false {distribution}"}
        self._write(
            "rabbitmqctl",
            "#!/bin/sh",
            *(f"export {name}={shlex.quote(value)}" for name, value in ctl.items()),
            f'exec {shlex.quote(str(scripts / "rabbitmqctl"))} "$@"',
        )
        self.rabbitmqctl.chmod(0o700)
        environment = common | {
            "RABBITMQ_MNESIA_BASE": str(self.path / "data"),
            "RABBITMQ_LOG_BASE": str(self.path / "log"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(self.path / "data" / "config"),
            "RABBITMQ_CONFIG_FILE": str(self.path / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self.path / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.path / "enabled_plugins"),
            "RABBITMQ_DIST_PORT": str(record.distribution_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                f"-sname {NODE_NAME} {distribution} -kernel inet_dist_use_interface {{127,0,0,1}} {_WAKE_QUEUES}"
            ),
            # Makes the script become the node instead of waiting for it, so that one pid is all there is to know.
            "RUNNING_UNDER_SYSTEMD": "true",
            "ERL_CRASH_DUMP": str(self.path / "log" / "erl_crash.dump"),
        }
        return environment | ({"RABBITMQ_SCRIPTS_DIR": str(scripts)} if is_lean else {})

    def last_words(self) -> str:
        """The end of what the node said, for an error message."""
        for log in (self.path / "log" / "rabbitmq.log", self.console):
            try:
                text = log.read_text("utf-8", "replace")
            except OSError:
                continue
            lines = [line.strip() for line in text.splitlines() if "[error]" in line or "ERROR" in line]
            if lines:
                return "\n".join(f"  {line[:200]}" for line in lines[-8:])
        return "  (nothing)"

    def _write(self, name: str, *lines: str) -> None:
        write_owner_only(self.path / name, "".join(f"{line}\n" for line in lines).encode())

    def _unusable(self, file: Path) -> SettingsError:
        return SettingsError(
            f"{file} is lost or damaged, so nobody can get into the node's data any more.",
            suggestion=f"`rm -r {self.path}` makes a new node; messages in the old one are lost.",
        )


def free_ports(wanted: Sequence[int | None]) -> list[int]:
    """A free port on 127.0.0.1 for each wanted one: that one where it is free, else another."""
    # All are held until all are chosen, so that no two are the same.
    held = [_bound(port) for port in wanted]
    try:
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def _bound(port: int | None) -> socket.socket:
    for candidate in (port or 0, 0):
        one = socket.socket()
        # As Erlang does it: a connection of the last node that still lingers does not make a port taken.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((HOST, candidate))
        except OSError:
            one.close()
        else:
            return one
    raise SettingsError(f"No port of {HOST} is free.", suggestion="Stop something that listens there.")

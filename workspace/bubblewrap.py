"""The command line of bubblewrap: a read-only system, a hidden home, no network, and the job's own folders.

As root, bwrap keeps nearly all capabilities and the job owns root's files: so capabilities are dropped, further
namespaces forbidden, and what not everybody may read in /etc is covered.
"""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schemas.errors import SettingsError, WorkspaceError
from workspace.job import SandboxJob
from workspace.readable import needs_of

# Settings of the whole machine: as root we are their owner inside too, and bwrap's own cover asks for the right to
# write the folder, not the files, so it leaves /proc/sys/kernel/core_pattern open (seen with 0.8.0).
_MACHINE = (
    "sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "driver", "mtrr", "tty", "pressure", "asound",
)  # fmt: skip
# Over these lie fresh, empty file systems.
_EMPTY = ("/tmp", "/run", "/var/tmp", "/dev/shm")
HOME = "/tmp/home"
_ACCOUNTS = {
    "passwd": f"root:x:0:0::/root:/bin/sh\nrolecall:x:1000:1000::{HOME}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "group": "root:x:0:\nrolecall:x:1000:\nnogroup:x:65534:\n",
}
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WITHOUT = "ROLECALL_SANDBOX=none runs commands without a sandbox, for code that you trust."


@dataclass(frozen=True, slots=True)
class _Bind:
    """One folder of ours inside the sandbox."""

    source: Path
    at: Path
    writable: bool = False


@cache
def bubblewrap() -> str:
    """Where bwrap is, tried once. Raises SettingsError with how to get it or what keeps it from working."""
    found = shutil.which("bwrap")
    if found is None:
        raise SettingsError(
            "There is no bubblewrap (`bwrap`) on PATH, and foreign code runs in it.",
            suggestion=f"Install it (`apt install bubblewrap`, `dnf install bubblewrap`). {_WITHOUT}",
        )
    trial = subprocess.run(
        [found, *_isolation(found), *_system(), *_proc_and_dev(), "/bin/true"],
        capture_output=True, env={"PATH": SYSTEM_PATH}, timeout=60, check=False,
    )  # fmt: skip
    if trial.returncode != 0:
        said = trial.stderr.decode("utf-8", "replace").strip()[-300:]
        raise SettingsError(
            f"bubblewrap cannot make a sandbox on this machine: {said}",
            suggestion="User namespaces may be off (sysctl kernel.unprivileged_userns_clone, "
            f"kernel.apparmor_restrict_unprivileged_userns, or a container's profile). {_WITHOUT}",
        )
    return found


def bubblewrap_command(job: SandboxJob, *, tree_at: Path, status_fd: int) -> list[str]:
    """bwrap and the job's command. Makes the mount points that the job's folders need in its tree."""
    binary = bubblewrap()
    needs = needs_of(job.environment.absolute()) if job.environment else None
    standing = {tree_at, job.checkout.resolve()} if job.checkout else {tree_at}
    binds = [_Bind(job.tree, at, writable=True) for at in standing]
    binds += [_Bind(path, path, writable=True) for path in job.writable]
    if needs is not None:
        # What the environment imports from the user's checkout must come from the tree.
        elsewhere = [
            one for one in needs.imported if not any(one.resolve().is_relative_to(at) for at in standing)
        ]
        binds += [_Bind(path, path) for path in (*needs.folders, *elsewhere)]
    binds += [_Bind(path, path) for path in job.readable]
    ordered = _in_order(binds)
    _make_mount_points(ordered, job.tree)
    arguments = [binary, *_isolation(binary), *_system()]
    arguments += _proc_and_dev()
    for folder in _EMPTY:
        arguments += [*_size(binary, job.limits.memory_bytes), "--tmpfs", folder]
    arguments += ["--dir", HOME, *_accounts(job.log.parent)]
    visible = [Path("/usr"), Path("/etc"), *(bind.at for bind in ordered)]
    for link, target in needs.links if needs else ():
        if not any(link.is_relative_to(at) for at in visible):
            arguments += ["--symlink", target, str(link)]
    for bind in ordered:
        arguments += ["--bind" if bind.writable else "--ro-bind", str(bind.source), str(bind.at)]
    return [*arguments, "--json-status-fd", str(status_fd), "--chdir", str(tree_at), "--", *job.command]


def _accounts(folder: Path) -> list[str]:
    """The users that a job finds in /etc: itself, with its home, and root; not the people of this machine."""
    arguments = []
    for name, rows in _ACCOUNTS.items():
        (folder / name).write_text(rows, "utf-8")
        arguments += ["--ro-bind", str(folder / name), f"/etc/{name}"]
    return arguments


def _isolation(binary: str) -> list[str]:
    flags = [
        "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--die-with-parent",
        "--new-session", "--hostname", "localhost",
    ]  # fmt: skip
    # From 0.8 on; before, a job can make namespaces of its own, but still has no capability outside.
    return [*flags, "--disable-userns"] if "--disable-userns" in _help(binary) else flags


def _size(binary: str, size_bytes: int) -> list[str]:
    return ["--size", str(size_bytes)] if "--size" in _help(binary) else []


@cache
def _help(binary: str) -> str:
    return subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=60, check=False).stdout


def _system() -> list[str]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    for store in ("/etc", "/nix/store", "/gnu/store"):
        arguments += ["--ro-bind-try", store, store]
    return [*arguments, *_covers()]


def _proc_and_dev() -> list[str]:
    arguments = ["--proc", "/proc", "--dev", "/dev"]
    for name in _MACHINE:
        arguments += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    return arguments


@cache
def _covers() -> tuple[str, ...]:
    """Empty things over what is in /etc and not for everybody: inside, we would still be its owner."""
    return tuple(
        word for path, is_folder in _private(Path("/etc")) for word in _cover(path, is_folder=is_folder)
    )


def _cover(path: str, *, is_folder: bool) -> tuple[str, ...]:
    return ("--tmpfs", path) if is_folder else ("--ro-bind", "/dev/null", path)


def _private(folder: Path) -> Iterator[tuple[str, bool]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                if mode & 0o005 == 0o005:
                    yield from _private(Path(entry.path))
                else:
                    yield entry.path, True
            elif stat.S_ISREG(mode) and not mode & 0o004:
                yield entry.path, False


def _in_order(binds: list[_Bind]) -> list[_Bind]:
    """Outer folders first, so that no mount hides an inner one; what is bound already at a place stays."""
    by_place: dict[Path, _Bind] = {}
    for bind in binds:
        by_place.setdefault(bind.at, bind)
    system = (Path("/usr"), Path("/bin"), Path("/lib"), Path("/lib64"), Path("/sbin"), Path("/etc"))
    wanted = [
        bind
        for at, bind in by_place.items()
        if bind.writable or not any(at.is_relative_to(s) for s in system)
    ]
    return sorted(wanted, key=lambda bind: len(bind.at.parts))


def _make_mount_points(ordered: list[_Bind], tree: Path) -> None:
    for index, bind in enumerate(ordered):
        around = [
            other for other in ordered[:index] if bind.at != other.at and bind.at.is_relative_to(other.at)
        ]
        if around and around[-1].source == tree:
            _make_mount_point(tree, bind.at.relative_to(around[-1].at), is_folder=bind.source.is_dir())


def _make_mount_point(tree: Path, inside: Path, *, is_folder: bool) -> None:
    """In the disposable copy, never through a link: the commit may hold one that leads out of it."""
    at = tree
    for part in inside.parts if is_folder else inside.parts[:-1]:
        at /= part
        if at.is_symlink() or (at.exists() and not at.is_dir()):
            raise WorkspaceError(
                f"The commit holds {str(inside)!r}, where the job needs a folder of its own."
            )
        at.mkdir(exist_ok=True)
    if not is_folder:
        (tree / inside).touch()

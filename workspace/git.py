"""Git, hardened: every git process of ours starts here.

No configuration of machine or user, no hooks, no monitors, no prompts, no automatic maintenance, the C locale, a
time limit, and an environment that is built from nothing. The one exception is `user_config=True`, for questions
about the user's own checkout that only their settings answer (what is ignored, what counts as changed).
"""

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from schemas.errors import SettingsError, WorkspaceError

# Local plumbing answers in seconds; this only ends what hangs on a dead disk.
LOCAL_LIMIT_S = 900.0
# A first fetch of a large repository over a slow line.
NETWORK_LIMIT_S = 3600.0
OLDEST_VERSION = (2, 34)

_ALWAYS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.alternateRefsCommand=true",
    "core.askPass=true",
    "core.logAllRefUpdates=false",
    "gc.auto=0",
    "gc.autoDetach=false",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "push.recurseSubmodules=no",
    "commit.gpgSign=false",
    "diff.renames=false",
)
# What git itself needs from our surroundings, and what ssh and TLS need to reach a hub.
_KEPT = (
    "PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
    "LD_LIBRARY_PATH",
)  # fmt: skip
# In a URL that git repeats in its complaint.
_PASSWORD = re.compile(r"(://[^/:@\s]*):[^/@\s]*@")
_OWN_CONFIG = Path(__file__).with_name("gitconfig")


class GitError(WorkspaceError):
    """Git said no; carries the command, its exit status and what it wrote."""

    def __init__(self, command: tuple[str, ...], status: int, stderr: str) -> None:
        self.command = command
        self.status = status
        self.stderr = _PASSWORD.sub(r"\1:***@", stderr)
        what = " ".join(command[:3])
        super().__init__(f"git {what} failed ({status}): {_last_lines(self.stderr) or 'it said nothing.'}")


def git(
    repository: Path | None,
    *arguments: str | bytes,
    stdin: bytes | None = None,
    ok: Collection[int] = (0,),
    settings: Collection[str] = (),
    env: Mapping[str, str] | None = None,
    user_config: bool = False,
    cwd: Path | None = None,
    limit_s: float = LOCAL_LIMIT_S,
) -> bytes:
    """Run git in a repository (its git directory, or None for none) and give back what it wrote.

    Raises GitError if the exit code is not in `ok`, and SettingsError if there is no git.
    """
    command = git_command(repository, *arguments, settings=settings)
    try:
        done = subprocess.run(
            command,
            input=stdin if stdin is not None else b"",
            capture_output=True,
            env=git_environment(user_config=user_config) | dict(env or {}),
            cwd=cwd,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise GitError(_words(arguments), -9, f"no end after {limit_s:.0f} s; killed.") from error
    if done.returncode not in ok:
        raise GitError(_words(arguments), done.returncode, done.stderr.decode("utf-8", "replace"))
    return done.stdout


def git_command(
    repository: Path | None, *arguments: str | bytes, settings: Collection[str] = ()
) -> list[str | bytes]:
    """The argument list for a hardened git, for those who keep the process (`cat-file --batch`)."""
    where = [] if repository is None else [f"--git-dir={repository}"]
    flags = [part for setting in (*_ALWAYS, *settings) for part in ("-c", setting)]
    return [
        git_binary(),
        "--no-pager",
        "--no-replace-objects",
        "--literal-pathspecs",
        *where,
        *flags,
        *arguments,
    ]


def git_environment(*, user_config: bool = False) -> dict[str, str]:
    """The environment for a hardened git."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    ours = {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ALLOW_PROTOCOL": "file:git:ssh:http:https",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=20",
        "GIT_ADVICE": "0",
    }
    if user_config:
        return kept | {name: os.environ[name] for name in ("XDG_CONFIG_HOME",) if name in os.environ} | ours
    return (
        kept
        | ours
        | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": str(_OWN_CONFIG), "GIT_ATTR_NOSYSTEM": "1"}
    )


@cache
def git_binary() -> str:
    """Where git is. Raises SettingsError with how to get it."""
    found = shutil.which("git")
    if found is None:
        raise SettingsError(
            "There is no git on PATH.", suggestion="Install it, for instance `apt install git`."
        )
    return found


@cache
def git_version() -> tuple[int, ...]:
    """The version of git as numbers. Raises SettingsError if it is older than what we were built on."""
    said = git(None, "version").decode()
    numbers = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", said)
    version = tuple(int(part or 0) for part in numbers.groups()) if numbers else (0,)
    if version < OLDEST_VERSION:
        raise SettingsError(
            f"git {'.'.join(map(str, version))} is too old.",
            suggestion=f"Install git {'.'.join(map(str, OLDEST_VERSION))} or newer.",
        )
    return version


def quote_path(path: bytes) -> bytes:
    """A path as git's stream commands read it: C-quoted, so that any byte is safe."""
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'


def _words(arguments: tuple[str | bytes, ...]) -> tuple[str, ...]:
    return tuple(a if isinstance(a, str) else a.decode("utf-8", "replace") for a in arguments)


def _last_lines(stderr: str) -> str:
    return " ".join(stderr.split("\n")[-6:]).strip()[-600:]

"""The hub's repository on disk: how it is made, and the settings that keep everything in it as it was written."""

import re
import shutil
import tempfile
from pathlib import Path
from typing import Literal, cast

from schemas.errors import SettingsError
from workspace.git import GitError, git, git_version

ObjectFormat = Literal["sha1", "sha256"]

# Nothing is collected by itself: an ordinary push made git's own maintenance delete results that had no ref yet.
# Histories hold old oddities that fsck calls errors; they are the user's, and not a danger.
_CONFIG = """\
[gc]
\tauto = 0
\tautoDetach = false
\tpruneExpire = never
[maintenance]
\tauto = false
[receive]
\tautogc = false
\tfsckObjects = true
[receive "fsck"]
\tzeroPaddedFilemode = ignore
\tmissingSpaceBeforeDate = ignore
\tmissingEmail = ignore
\tbadTimezone = ignore
\tbadDate = ignore
\tmissingTaggerEntry = ignore
[uploadpack]
\tallowAnySHA1InWant = true
[core]
\tlogAllRefUpdates = false
\tfilesRefLockTimeout = 10000
\tpackedRefsTimeout = 10000
\tcompression = 1
\tfsync = committed
\tfsyncMethod = batch
"""
# The last word on attributes: a repository's own .gitattributes change no byte here.
_ATTRIBUTES = "* -text !eol -ident -filter -working-tree-encoding -export-subst -export-ignore\n"
# host:path as ssh takes it, but not a drive letter or a path with a colon in it.
_SCP = re.compile(r"[^/\\:]{2,}:.*")


def is_url(location: str | Path) -> bool:
    """True for what git must be asked about over a protocol; a path is opened directly."""
    if isinstance(location, Path):
        return False
    return "://" in location or (_SCP.fullmatch(location) is not None and not Path(location).exists())


def create_repository(path: Path, object_format: ObjectFormat) -> Path:
    """A bare repository with our settings, made complete before it appears at the path; one that is there stays."""
    path = path.absolute()
    if (path / "HEAD").exists():
        return path
    git_version()
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        git(None, "init", "--quiet", "--bare", "--template=", f"--object-format={object_format}", str(fresh))
        with (fresh / "config").open("a", encoding="utf-8") as config:
            config.write(_CONFIG)
        (fresh / "info").mkdir(exist_ok=True)
        (fresh / "info" / "attributes").write_text(_ATTRIBUTES, encoding="utf-8")
        _move(fresh, path)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return path


def object_format_of(path: Path) -> ObjectFormat:
    """The object format of the bare repository at the path. Raises SettingsError if there is none."""
    try:
        said = git(path, "rev-parse", "--is-bare-repository", "--show-object-format").decode().split()
    except GitError as error:
        raise SettingsError(
            f"There is no hub at {path}: {error.stderr.strip()[-200:]}",
            suggestion="`rolecall up` makes one; give a URL if it is on another machine.",
        ) from error
    if said[0] != "true":
        raise SettingsError(f"{path} is a repository with a working tree, not a hub.")
    return cast(ObjectFormat, said[1])


def _move(fresh: Path, path: Path) -> None:
    try:
        fresh.rename(path)
    except OSError as error:
        # Somebody was quicker, which is fine; an ordinary folder in the way is not.
        if not (path / "HEAD").exists():
            raise SettingsError(f"The hub cannot be made at {path}: {error.strerror}.") from error

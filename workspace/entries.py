"""What stands at a path: an entry of a commit's tree, and the file that an action wants there.

Paths are git's: relative, `/`-separated bytes, carried as str with surrogate escapes for what is not UTF-8.
"""

from dataclasses import dataclass
from hashlib import sha1, sha256
from typing import Literal

FILE_MODE = "100644"
EXECUTABLE_MODE = "100755"
LINK_MODE = "120000"
SUBMODULE_MODE = "160000"


@dataclass(frozen=True, slots=True)
class Entry:
    """A leaf of a tree. `mode` is git's six octal digits; a submodule is the kind `commit` and has size 0.

    A link's blob is the text it points at.
    """

    mode: str
    kind: Literal["blob", "commit"]
    oid: str
    size: int

    @property
    def is_file(self) -> bool:
        """True for a regular file, executable or not."""
        return self.mode.startswith("100")

    @property
    def is_executable(self) -> bool:
        """True for a regular file that may be run."""
        return self.mode == EXECUTABLE_MODE

    @property
    def is_link(self) -> bool:
        """True for a symbolic link."""
        return self.mode == LINK_MODE

    @property
    def is_submodule(self) -> bool:
        """True for a submodule: another repository's commit, of which we have no files."""
        return self.mode == SUBMODULE_MODE


@dataclass(frozen=True, slots=True)
class NewFile:
    """What shall stand at a path: its bytes, and a mode taken over from the old entry where there was one."""

    mode: str
    data: bytes


def to_bytes(path: str) -> bytes:
    """A path as git and the file system have it."""
    return path.encode("utf-8", "surrogateescape")


def to_text(path: bytes) -> str:
    """A path as we carry it."""
    return path.decode("utf-8", "surrogateescape")


def blob_id(data: bytes, object_format: Literal["sha1", "sha256"] = "sha1") -> str:
    """The id that git gives to these bytes as a blob."""
    whole = b"blob %d\0%s" % (len(data), data)
    return (sha256(whole) if object_format == "sha256" else sha1(whole, usedforsecurity=False)).hexdigest()

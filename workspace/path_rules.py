"""Which paths no commit of ours may hold: those that would escape the tree or become part of a `.git` folder.

A file system may fold case, ignore some code points (HFS+), cut trailing dots and spaces, keep short names and
streams (NTFS) or take a backslash for a separator: a name is judged by what any of them would make of it.
"""

import re

# Code points that HFS+ leaves out when it compares names (git's utf8.c, next_hfs_char).
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_DOT_GIT = re.compile(r"\.git|git~[0-9]+")
# Short names as NTFS makes them: six letters and a number, or a hash of four digits (git's path.c).
_CONTROL_FILE = re.compile(
    r"\.gitmodules|gitmod~[0-9]+|gi7eba~[0-9]+|\.gitattributes|gitatt~[0-9]+|gi7d29~[0-9]+"
)
# What nearly all paths look like, and nothing below can object to: no part begins with a dot or holds ~ : \\.
_PLAIN = re.compile(rb"(?:[A-Za-z0-9_][A-Za-z0-9_.+@=,-]*/)*[A-Za-z0-9_][A-Za-z0-9_.+@=,-]*")
# What file systems take: longer names exist in no checkout.
_LONGEST_NAME = 255
_LONGEST_PATH = 4000


def danger(path: bytes) -> str | None:
    """Why no commit may hold this path, as the end of a sentence; None if it may."""
    if len(path) <= _LONGEST_NAME and _PLAIN.fullmatch(path):
        return None
    if b"\0" in path or not path:
        return "is no path"
    if len(path) > _LONGEST_PATH:
        return "is longer than file systems take"
    names = path.split(b"/")
    for name in names:
        if name == b"":
            return "is absolute or has an empty part"
        if len(name) > _LONGEST_NAME:
            return "has a part that is longer than file systems take"
    for name in re.split(rb"[/\\]", path):
        if name in (b".", b"..") or _folded(name) in (".", ".."):
            return "leaves the tree"
        if _DOT_GIT.fullmatch(_folded(name)):
            return "is part of a .git folder (in some spelling)"
    return None


def is_control_file(path: bytes) -> bool:
    """True for `.gitmodules` and `.gitattributes`, in any spelling: they change what git does elsewhere."""
    return any(_CONTROL_FILE.fullmatch(_folded(name)) for name in re.split(rb"[/\\]", path))


def leaves_tree(path: bytes, target: bytes) -> bool:
    """True if a symbolic link at `path` with that target points out of the tree, or into a `.git` folder."""
    if not target or target.startswith((b"/", b"\\")) or re.match(rb"[A-Za-z]:", target):
        return True
    depth = path.count(b"/")
    for name in re.split(rb"[/\\]", target):
        if name == b"..":
            depth -= 1
            if depth < 0:
                return True
        elif name not in (b"", b"."):
            if _DOT_GIT.fullmatch(_folded(name)):
                return True
            depth += 1
    return False


def _folded(name: bytes) -> str:
    text = _IGNORED.sub("", name.decode("utf-8", "replace")).casefold()
    stem = text.split(":", 1)[0].rstrip(" ")
    return stem.rstrip(" .") or stem

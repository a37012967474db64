"""Is this result commit what a worker may hand in? Checked before anything uses it, by the objects themselves.

`git fast-import` takes `.git/config` and `../evil` without a word, and a worker may write objects by hand: so every
tree that differs from the base's is parsed strictly, and every changed path is judged by name, mode and target.
An empty answer means that nothing is wrong.
"""

from collections.abc import Collection, Iterator, Mapping

from schemas.errors import WorkspaceError
from schemas.handoff import Finding
from schemas.scope import Reach
from workspace.effects import Effect, effects_of
from workspace.entries import LINK_MODE, SUBMODULE_MODE, to_text
from workspace.hub import Hub
from workspace.objects import Commit, ObjectReader
from workspace.path_rules import danger, leaves_tree
from workspace.tree_walk import Difference, Leaf, differences
from workspace.writing import identity

_MODES = frozenset({"100644", "100755", LINK_MODE, SUBMODULE_MODE})
# A result with more faults than this is not a slip; the first ones say enough.
_MOST_FINDINGS = 50

_WHY = {
    Effect.DELETIONS: "is deleted",
    Effect.LOCK_FILES: "is a lock file",
    Effect.BUILD_FILES: "is a build file",
    Effect.CI_FILES: "is a CI file",
    Effect.LINKS: "is or was a symbolic link",
    Effect.MODES: "changes its mode",
    Effect.GIT_FILES: "changes what git does with other files",
    Effect.SUBMODULES: "is or was a submodule",
}


def check_result(
    hub: Hub, base: str, result: str, reach: Reach, allow: Collection[str] = ()
) -> tuple[Finding, ...]:
    """The faults of `result` as the outcome of one attempt on `base`, within a reach and with granted effects."""
    reader = hub.objects
    try:
        hub.ensure(base)
        hub.ensure(result)
        before, after = reader.commit(base), reader.commit(result)
        changed = differences(reader, before.tree, after.tree)
        links = _link_targets(reader, changed)
        absent = _absent_blobs(reader, changed)
    except WorkspaceError as error:
        return (_finding("objects", str(error)),)
    findings = list(_commit_faults(base, before, after))
    for path, (old, new) in changed.items():
        findings += _path_faults(path, old, new, reach, allow)
        if path in absent:
            findings.append(_finding("objects", "has content that is not in the hub.", path))
        if path in links and leaves_tree(path, links[path]):
            findings.append(_finding("links", f"points out of the tree, to {to_text(links[path])!r}.", path))
        if len(findings) >= _MOST_FINDINGS:
            break
    return tuple(findings[:_MOST_FINDINGS])


def _commit_faults(base: str, before: Commit, after: Commit) -> Iterator[Finding]:
    if after.parents != (base,):
        told = ", ".join(after.parents) or "nothing"
        yield _finding("commit", f"The result stands on {told}, not on its base {base}.")
    who = identity(before.date)
    expected = [b"tree", b"parent", b"author", b"committer"]
    if [key for key, _ in after.headers] != expected or after.header(b"author") != who:
        yield _finding("commit", f"The result's author and dates are not the fixed ones ({to_text(who)}).")
    elif after.header(b"committer") != who:
        yield _finding("commit", f"The result's committer is not the fixed one ({to_text(who)}).")
    if not after.message.strip() or not _is_utf8(after.message):
        yield _finding("commit", "The result's message is empty or not UTF-8.")
    if before.tree == after.tree:
        yield _finding("commit", "The result holds the same files as its base.")


def _path_faults(
    path: bytes, old: Leaf | None, new: Leaf | None, reach: Reach, allow: Collection[str]
) -> Iterator[Finding]:
    if new is not None:
        reason = danger(path)
        if reason is not None:
            yield _finding("path", f"{reason}.", path)
        elif old is None and b"\\" in path:
            yield _finding("path", "is new and has a backslash, which other systems take for a folder.", path)
        if new.mode not in _MODES and (old is None or old.mode != new.mode):
            yield _finding("path", f"has the mode {new.mode}.", path)
    if not reach.admits(to_text(path)):
        yield _finding("scope", "is outside the scope of this step.", path)
    for effect in sorted(effects_of(path, old, new)):
        if effect not in allow:
            yield _finding("effects", f"{_WHY[effect]}, which needs `--allow {effect}`.", path)


def _link_targets(reader: ObjectReader, changed: Mapping[bytes, Difference]) -> dict[bytes, bytes]:
    links = {path: new.oid for path, (_, new) in changed.items() if new is not None and new.mode == LINK_MODE}
    return {path: content for path, (_, content) in zip(links, reader.read_many(links.values()), strict=True)}


def _absent_blobs(reader: ObjectReader, changed: Mapping[bytes, Difference]) -> set[bytes]:
    blobs = {
        path: new.oid for path, (_, new) in changed.items() if new is not None and new.mode != SUBMODULE_MODE
    }
    kinds = reader.kinds(blobs.values())
    return {path for path, oid in blobs.items() if kinds[oid] != "blob"}


def _finding(gate: str, text: str, path: bytes | None = None) -> Finding:
    if path is None:
        return Finding(gate=gate, text=text)
    return Finding(gate=gate, text=f"{to_text(path)!r} {text}", path=to_text(path))


def _is_utf8(message: bytes) -> bool:
    try:
        message.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True

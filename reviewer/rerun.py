"""The gates of proof: `rerun` applies the rule again and wants the same files, `twice` rests on two independent runs.

The reviewer never looks at what an executor remembers: it reads the base and runs the engine itself, or remembers
what came of that before.
"""

from collections.abc import Mapping

from engines.memory import Memory, apply_remembering
from engines.registry import engine_for
from reviewer.case import Case, GateReport, could_not_run, finding, judge
from schemas.errors import RolecallError
from schemas.handoff import Finding
from schemas.words import Verdict
from workspace.entries import Entry, NewFile, blob_id
from workspace.hub import Hub
from workspace.view import HubView


def rerun(case: Case, memory: Memory) -> GateReport:
    """The rule, applied again to the base within the same reach, gives exactly the result's files."""
    engine = engine_for(case.contract)
    if engine is None:
        return could_not_run(
            "rerun", f"No engine here runs {case.contract}; such a contract is proved by running it twice."
        )
    try:
        engine.check(case.input)
        again = apply_remembering(engine, case.input, HubView(case.hub, case.base, case.reach), memory)
    except RolecallError as error:
        return could_not_run("rerun", f"The rule cannot be applied here: {error}")
    entries = case.hub.list_tree(case.base)
    wanted = _really_changed(case.hub, entries, again.changes)
    given = {change.path: change for change in case.changes}
    found: list[Finding] = []
    for path in sorted(wanted.keys() | given.keys()):
        if path not in given:
            found.append(finding("rerun", "The rule changes this file, the result does not.", path=path))
            continue
        change = given[path]
        if path not in wanted:
            found.append(finding("rerun", "The result changes this file, the rule does not.", path=path))
            continue
        file = wanted[path]
        data, mode = (file.data, file.mode) if file is not None else (None, None)
        if (data, mode) != (change.after, change.new_mode):
            line = _first_difference(data or b"", change.after or b"")
            found.append(finding("rerun", "The rule gives another content here.", path=path, line=line))
    counts = {"files_changed": len(wanted), "files_seen": again.files_seen, "sites": again.sites}
    clean = f"{engine.name} {engine.version} gives the same {len(wanted)} files again"
    if case.result is None:
        clean = f"{engine.name} {engine.version} finds nothing to change either"
    return judge("rerun", found, clean=clean, counts=counts)


def twice(case: Case) -> GateReport:
    """Two runs that know nothing of each other gave this result; the supervisor has compared the commit ids."""
    what = case.result[:12] if case.result else "no change"
    return GateReport("twice", Verdict.PASS, f"two independent runs gave {what}", counts={"runs": 2})


def _really_changed(
    hub: Hub, entries: Mapping[str, Entry], changes: Mapping[str, NewFile | None]
) -> dict[str, NewFile | None]:
    """The changes without those that put there what stands there."""
    kept: dict[str, NewFile | None] = {}
    for path, file in changes.items():
        entry = entries.get(path)
        if file is None:
            if entry is not None:
                kept[path] = None
        elif entry is None or (entry.mode, entry.oid) != (file.mode, blob_id(file.data, hub.object_format)):
            kept[path] = file
    return kept


def _first_difference(one: bytes, other: bytes) -> int:
    lines = zip(one.splitlines(), other.splitlines(), strict=False)
    same = next((n for n, (a, b) in enumerate(lines, 1) if a != b), None)
    return same if same is not None else min(one.count(b"\n"), other.count(b"\n")) + 1

"""A change action: the engine of its contract on the snapshot, within its reach; a result commit out.

Nothing is written but objects and the attempt's own ref in the hub. What the engine could not read, parse or
decide comes back as residue and risks: "no match" and "not processed" are different answers.
"""

from collections import Counter
from collections.abc import Sequence

from engines.api import Engine, EngineResult
from engines.memory import Memory, apply_remembering
from engines.registry import engine_for
from executor.key_changes import PYTHON_ENDINGS, key_changes
from executor.landing import Landed, OutOfReachError, land
from schemas.action import Action
from schemas.errors import ContractError, RolecallError
from schemas.handoff import Evidence, FileChange, Handoff
from schemas.words import Outcome, Verdict
from workspace.answers import Stopwatch
from workspace.hub import Hub, PathChange
from workspace.view import HubView
from workspace.work import WorkContext

# Beyond this many files a report shows counts; reading both versions of each would take longer than the rule.
_FILES_WITH_KEY_CHANGES = 400


def handle(action: Action, context: WorkContext) -> Handoff:
    """Apply the rule; hand off the result commit, or `no_change`."""
    watch = Stopwatch.started()
    try:
        engine = _engine(action)
        context.hub.ensure(action.base)
        context.note(f"applying {action.contract}")
        view = HubView(context.hub, action.base, action.reach)
        made = apply_remembering(engine, action.input, view, Memory(context.cache))
        landed = land(action, context.hub, made.changes, maker=f"{engine.name} {engine.version}")
        files = describe(context.hub, landed.changes, made)
    except (ContractError, OutOfReachError) as error:
        return watch.failed(action, error, outcome=Outcome.FAILED)
    except RolecallError as error:
        return watch.failed(action, error, outcome=Outcome.COULD_NOT_RUN)
    return watch.answer(
        action,
        outcome=Outcome.DONE if landed.commit else Outcome.NO_CHANGE,
        result=landed.commit,
        output=made.output(),
        files=files,
        residue=made.residue,
        risks=made.risks,
        evidence=(_evidence(engine, made, landed),),
        provenance=tuple(one.model_copy(update={"rule": action.rule or ""}) for one in made.provenance),
        engines={engine.name: engine.version},
    )


def describe(hub: Hub, changes: Sequence[PathChange], made: EngineResult) -> tuple[FileChange, ...]:
    """The changed files with line counts, and what changed in them in a few words."""
    looked_at = changes[:_FILES_WITH_KEY_CHANGES]
    wanted = sorted(
        {
            oid
            for one in looked_at
            for oid in (one.old_oid, one.new_oid)
            if oid and one.path.endswith(PYTHON_ENDINGS)
        }
    )
    blobs = dict(zip(wanted, hub.read_many(wanted), strict=True))
    names = {
        one.path: key_changes(one.path, blobs.get(one.old_oid or ""), blobs.get(one.new_oid or ""))
        for one in looked_at
    }
    sites = Counter({one.path: one.hunk for one in made.provenance})
    described = []
    for change in changes:
        count = _sites(sites[change.path])
        described.append(
            change.as_file_change().model_copy(update={"key_changes": count + names.get(change.path, ())})
        )
    return tuple(described)


def _engine(action: Action) -> Engine:
    engine = engine_for(action.contract)
    if engine is None:
        raise ContractError(
            f"No engine here runs {action.contract}.",
            suggestion="Start the role that serves it; `rolecall contracts` shows who does.",
        )
    engine.check(action.input)
    return engine


def _evidence(engine: Engine, made: EngineResult, landed: Landed) -> Evidence:
    changed = len(landed.changes)
    told = f"changed {made.sites} sites in {changed} files" if changed else "found nothing to change"
    return Evidence(
        claim=f"{engine.name} {engine.version} looked at {made.files_seen} files and {told}",
        verdict=Verdict.PASS,
        counts={
            "files_seen": made.files_seen,
            "files_changed": changed,
            "sites": made.sites,
            "residue": len(made.residue),
        },
    )


def _sites(count: int) -> tuple[str, ...]:
    return () if not count else ("1 site",) if count == 1 else (f"{count} sites",)

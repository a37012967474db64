"""One action of an author's role: files in, the author's handler, a result commit and an honest handoff out.

Whatever the author's code raises fails the attempt with that reason, and nothing else.
"""

import inspect
import sys
import traceback
from collections.abc import Awaitable
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from engines.api import EngineResult
from executor.landing import OutOfReachError, land
from executor.work import describe
from rolecall.authoring import Files, Result, Role
from schemas.action import Action
from schemas.errors import ContractError, RolecallError, SettingsError
from schemas.handoff import Evidence, Failure, Handoff, Provenance
from schemas.validation import checker
from schemas.words import Outcome, Verdict
from workspace.answers import Stopwatch
from workspace.hub import Hub
from workspace.view import HubView
from workspace.work import WorkContext

ROLE_OPTION = "role"
FOLDER_OPTION = "folder"
# The author's own lines are at the end; the rest of a traceback is ours.
_FRAMES_TOLD = 3


def load_role(place: str, folder: Path) -> Role:
    """The role at `module:Class`, with `folder` on the import path. Raises SettingsError with what is wrong."""
    module_name, colon, name = place.partition(":")
    if not colon or not module_name or not name:
        raise SettingsError(
            f"{place!r} is not MODULE:CLASS.", suggestion="For instance licence_headers:LicenceHeaders."
        )
    try:
        module = _imported(module_name, folder)
    except ImportError as error:
        raise SettingsError(
            f"{module_name!r} cannot be imported: {error}.",
            suggestion=f"Stand in its folder; this is {folder}.",
        ) from error
    found = getattr(module, name, None)
    if found is None:
        known = [
            one for one, value in vars(module).items() if inspect.isclass(value) and issubclass(value, Role)
        ]
        raise SettingsError(
            f"{module_name} has no {name!r}; its roles are {', '.join(one for one in known if one != 'Role') or 'none'}."
        )
    role = found() if inspect.isclass(found) else found
    if not isinstance(role, Role) or not hasattr(role, "contract"):
        raise SettingsError(
            f"{place} is no role.", suggestion="It must be a subclass of rolecall.Role with a `contract`."
        )
    return role


def is_async(role: Role) -> bool:
    """True if the handler waits in the event loop instead of computing in a child process."""
    return inspect.iscoroutinefunction(role.handle)


def handle(action: Action, context: WorkContext) -> Handoff:
    """The work function of the child processes; the role's place is among its options."""
    role = load_role(str(context.options[ROLE_OPTION]), Path(str(context.options[FOLDER_OPTION])))
    return perform(role, action, context.hub)


def perform(role: Role, action: Action, hub: Hub) -> Handoff:
    """One action with a handler that computes."""
    watch = Stopwatch.started()
    try:
        view = _view(role, action, hub)
        made = role.handle(dict(action.input), Files(view))
        return _landed(role, action, hub, view, _checked(made), watch)
    except Exception as error:  # the author's code may raise anything
        return _failed(action, error, watch)


async def perform_async(role: Role, action: Action, hub: Hub) -> Handoff:
    """One action with a handler that waits."""
    watch = Stopwatch.started()
    try:
        view = _view(role, action, hub)
        made = role.handle(dict(action.input), Files(view))
        result = await made if isinstance(made, Awaitable) else made
        return _landed(role, action, hub, view, _checked(result), watch)
    except Exception as error:  # the author's code may raise anything
        return _failed(action, error, watch)


def engine_of(role: Role) -> dict[str, str]:
    """Name and version of the author's code, as they go into commits and announcements."""
    return {role.contract.document.name: role.version}


def check_role(place: str, folder: str) -> None:
    """Load the role and let it go: what the trial of a worker process calls. Raises SettingsError."""
    load_role(place, Path(folder))


def _imported(name: str, folder: Path) -> ModuleType:
    """The module, from `folder` if it is there. Raises ImportError.

    The folder is last on the import path: whatever else lies in it (a clone of this project, a `schemas.py`) must
    not stand for our own packages. Only the role's own module is looked for there first.
    """
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    top = name.partition(".")[0]
    spec = None if top in sys.modules else PathFinder.find_spec(top, [str(folder)])
    if spec is not None and spec.loader is not None:
        module = sys.modules[top] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[top]
            raise
    return import_module(name)


def _view(role: Role, action: Action, hub: Hub) -> HubView:
    document = role.contract.document
    if action.contract != document.ref:
        raise ContractError(f"This role serves {document.ref}, not {action.contract}.")
    checker(document.input).check(action.input, document.ref)
    hub.ensure(action.base)
    return HubView(hub, action.base, action.reach)


def _checked(made: Any) -> Result:
    if not isinstance(made, Result):
        raise ContractError(f"`handle` returned {type(made).__name__}, not a rolecall.Result.")
    return made


def _landed(role: Role, action: Action, hub: Hub, view: HubView, result: Result, watch: Stopwatch) -> Handoff:
    ((engine, version),) = engine_of(role).items()
    maker = f"{engine} {version}"
    changes = result.changes(view)
    made = EngineResult(
        changes=changes,
        sites=result.sites,
        files_seen=len(view.paths()),
        residue=result.residue,
        risks=result.risks,
        provenance=tuple(
            Provenance(path=path, hunk=1, engine=maker, rule=action.rule or "") for path in changes
        ),
        extras=result.output,
    )
    output = checker(role.contract.document.output).check(made.output(), f"the output of {action.contract}")
    landed = land(action, hub, changes, maker=maker)
    counts = {"files_seen": made.files_seen, "files_changed": len(landed.changes), "sites": made.sites}
    return watch.answer(
        action,
        outcome=Outcome.DONE if landed.commit else Outcome.NO_CHANGE,
        result=landed.commit,
        output=output,
        files=describe(hub, landed.changes, made),
        residue=made.residue,
        risks=made.risks,
        evidence=(
            Evidence(claim=f"{maker} ran over {made.files_seen} files", verdict=Verdict.PASS, counts=counts),
        ),
        provenance=made.provenance,
        engines={engine: version},
    )


def _failed(action: Action, error: Exception, watch: Stopwatch) -> Handoff:
    match error:
        case ContractError() | OutOfReachError():
            return watch.failed(action, error, outcome=Outcome.FAILED)
        case RolecallError():
            return watch.failed(action, error, outcome=Outcome.COULD_NOT_RUN)
        case _:
            frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_TOLD:]
            where = "; ".join(f"{Path(one.filename).name}:{one.lineno} in {one.name}" for one in frames)
            failure = Failure(
                code=type(error).__name__,
                message=f"The role raised {type(error).__name__}: {error} ({where})"[:2000],
                suggestion="Mend the role and give it a new version.",
            )
            return watch.answer(action, outcome=Outcome.FAILED, error=failure)

"""The engine of `rename.symbol`: locate, decide, refuse, edit, prove, and publish what is left."""

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from engines.api import EngineResult
from engines.languages import language_of
from engines.rename.alias import chain_of, class_with_alias, module_with_alias
from engines.rename.deciding import Decided, decide
from engines.rename.definitions import PYREFLY_VERSION, Definitions
from engines.rename.documents import Document, Documents, word_spans
from engines.rename.imports import Imports
from engines.rename.jedi_answers import JEDI_VERSION
from engines.rename.module_names import ModuleNames
from engines.rename.proof import is_proved, with_spans
from engines.rename.refusals import check_free, check_names
from engines.rename.residue import in_order, left_elsewhere, left_in_python, text_of
from engines.rename.scopes import MODULE
from engines.rename.target import Target, locate
from engines.rename.verdicts import By, Verdicts
from engines.source import UnreadableError
from engines.syntax import fault_spans, parse
from engines.text_replace import TextReplace
from schemas.errors import ContractError, WorkspaceError
from schemas.handoff import Provenance, Residue, RiskNote
from schemas.scope import path_key
from schemas.words import Severity
from workspace.entries import NewFile
from workspace.view import TreeView

_REVISION = 1


@dataclass(slots=True)
class _Made:
    """The new bytes by path, with how many places changed in each."""

    files: dict[str, bytes] = field(default_factory=dict)
    sites: dict[str, int] = field(default_factory=dict)
    had_new_name: list[str] = field(default_factory=list)
    words: int = 0


class RenameSymbol:
    """The engine of `rename.symbol`."""

    contract = "rename.symbol"
    name = "rolecall-rename"
    version = f"1.0+r{_REVISION}+pyrefly{PYREFLY_VERSION}+jedi{JEDI_VERSION}"

    def check(self, input: Mapping[str, Any]) -> None:
        check_names(input["symbol"], input["to"])

    def wants(self, input: Mapping[str, Any], path: str) -> bool:
        spoken = language_of(path)
        if spoken is not None and spoken.name == "python":
            return True
        return bool(input.get("in")) and TextReplace().wants(_words(input), path)

    def literals(self, input: Mapping[str, Any]) -> tuple[bytes, ...] | None:
        name = _old_name(input)
        return (name.encode(),) if name.isascii() else None

    def apply(self, input: Mapping[str, Any], view: TreeView) -> EngineResult:
        self.check(input)
        documents = Documents(view)
        names = ModuleNames(documents.python)
        imports = Imports(documents, names)
        target = locate(input["symbol"], documents, names, imports)
        _check_reach(target, documents)
        with ExitStack() as stack:
            decided = decide(target, documents, names, imports, lambda: _definitions(stack, documents, names))
            check_free(target, input["to"], decided, documents, imports, names)
        made = _edited(target, input, decided.verdicts, documents, view)
        if input.get("alias"):
            _keep_old_name(target, input["to"], decided, documents, made)
        residue = _residue(target, input, decided.verdicts, documents, view)
        return self._result(target, decided, made, residue, view)

    def _result(
        self, target: Target, decided: Decided, made: _Made, residue: list[Residue], view: TreeView
    ) -> EngineResult:
        changes: dict[str, NewFile | None] = {}
        provenance: list[Provenance] = []
        for path in sorted(made.files, key=path_key):
            entry = view.entry(path)
            assert entry is not None, path  # the view itself named this path
            changes[path] = NewFile(entry.mode, made.files[path])
            provenance.append(
                Provenance(path=path, hunk=made.sites[path], engine=f"{self.name} {self.version}")
            )
        counts = decided.verdicts.counts() | ({str(By.WORDS): made.words} if made.words else {})
        extras = {
            "symbol": target.dotted,
            "decided_by": dict(sorted(counts.items())),
            "proof": {"holds": True, "files": len(made.files), "had_new_name": made.had_new_name},
        }
        return EngineResult(
            changes,
            sum(made.sites.values()),
            len(view.paths()),
            in_order(residue),
            tuple(_risks(target, decided, residue)),
            tuple(provenance),
            extras,
        )


def _definitions(stack: ExitStack, documents: Documents, names: ModuleNames) -> Definitions:
    folder = stack.enter_context(
        tempfile.TemporaryDirectory(prefix="rolecall-rename-", ignore_cleanup_errors=True)
    )
    return stack.enter_context(Definitions(documents, names, Path(folder).resolve()))


def _edited(
    target: Target, input: Mapping[str, Any], verdicts: Verdicts, documents: Documents, view: TreeView
) -> _Made:
    made = _Made()
    for path, mine in verdicts.files.items():
        document = documents.get(path)
        if document is None or not document.in_reach or not mine.symbol:
            continue
        text = with_spans(document.text, mine.symbol, input["to"])
        _check_parses(document, text)
        try:
            made.files[path] = document.source.encode(text)
        except UnreadableError as error:
            raise ContractError(
                f"{path}: {error}.", suggestion="Choose a name that the file can hold."
            ) from error
        made.sites[path] = len(mine.symbol)
    if input.get("in"):
        _replace_words(input, made, view)
    for path, data in made.files.items():
        before, after = text_of(path, view.read(path)), text_of(path, data)
        if not is_proved(before, after, target.name, input["to"]):
            raise WorkspaceError(
                f"{path}: putting the old name back does not give the old text; nothing was changed."
            )
        if word_spans(before, input["to"]):
            made.had_new_name.append(path)
    made.had_new_name.sort(key=path_key)
    return made


def _replace_words(input: Mapping[str, Any], made: _Made, view: TreeView) -> None:
    words, engine = _words(input), TextReplace()
    wanted = [path for path in view.paths() if engine.wants(words, path)]
    for path, data in view.read_many(wanted):
        result = engine.replace(words, path, made.files.get(path, data))
        if result.data is not None:
            made.files[path] = result.data
            made.sites[path] = made.sites.get(path, 0) + result.sites
            made.words += result.sites


def _keep_old_name(target: Target, new: str, decided: Decided, documents: Documents, made: _Made) -> None:
    """Add the alias where the old name can be asked for: the defining module and packages that hand it out, or the
    highest classes of the family."""
    family, hierarchy = decided.family, decided.hierarchy
    if family is None or hierarchy is None:
        for path in sorted(made.files, key=path_key):
            is_package = PurePosixPath(path).stem == "__init__"
            of_module = any(one.kind == MODULE for one in decided.verdicts.of(path).variables)
            if path in target.paths or (is_package and of_module):
                made.files[path] = module_with_alias(path, made.files[path], target.name, new)
        return
    for key in sorted(family.classes):
        document = documents.get(key.path)
        is_highest = not hierarchy.ancestors(key) & family.classes
        if document is not None and is_highest and key.path in made.files:
            chain = chain_of(document, key)
            made.files[key.path] = class_with_alias(key.path, made.files[key.path], chain, target.name, new)


def _residue(
    target: Target, input: Mapping[str, Any], verdicts: Verdicts, documents: Documents, view: TreeView
) -> list[Residue]:
    replaced = frozenset(input.get("in") or ())
    python = frozenset(documents.python)
    residue: list[Residue] = []
    for path in documents.paths_having(target.name):
        document = documents.get(path)
        if document is not None:
            residue += left_in_python(document, verdicts.of(path), target.name, replaced)
        else:
            fault = documents.faults[path]
            residue += left_elsewhere(path, documents.data(path), target.name, frozenset(), fault)
    rest = [path for path in view.paths() if path not in python]
    for path, data in view.read_many(rest):
        residue += left_elsewhere(path, data, target.name, replaced, "")
    return residue


def _check_reach(target: Target, documents: Documents) -> None:
    for path in target.paths:
        document = documents.get(path)
        if document is not None and not document.in_reach:
            raise ContractError(
                f"{path}, which defines {target.dotted}, is outside of the rule's scope.",
                suggestion="Widen the scope; a rename must reach the definition and all uses.",
            )


def _check_parses(document: Document, text: str) -> None:
    spoken = language_of(document.path)
    if spoken is not None and fault_spans(parse(text, spoken), spoken):
        raise WorkspaceError(f"{document.path} would not parse with the new name; nothing was changed.")


def _risks(target: Target, decided: Decided, residue: list[Residue]) -> list[RiskNote]:
    found: list[RiskNote] = []
    left = sum(1 for one in residue if "scope, and still uses" in one.reason)
    if left:
        text = f"{left} lines outside of the rule's scope still use {target.name}, and will not find it."
        found.append(RiskNote(severity=Severity.WARNING, text=text))
    still_open = sum(len(one.open) for one in decided.verdicts.files.values())
    if still_open:
        text = f"{still_open} places may mean {target.dotted} and were left, because nobody can tell; see the residue."
        found.append(RiskNote(severity=Severity.WARNING, text=text))
    for base in decided.family.outside if decided.family is not None else ():
        if base.defines is None:
            text = f"The base {base.name} is not in this repository: if it has {target.name}, nothing overrides that any more."
            found.append(RiskNote(severity=Severity.INFO, text=text, path=base.holder.path))
    return found


def _words(input: Mapping[str, Any]) -> dict[str, Any]:
    return {"find": _old_name(input), "replace": input["to"], "words": True, "in": sorted(input["in"])}


def _old_name(input: Mapping[str, Any]) -> str:
    return str(input["symbol"].rpartition(":")[2].rpartition(".")[2])

"""Why a rename may not be done: a name that cannot be one, or that is taken where the symbol is bound or used."""

import keyword
import unicodedata

from engines.rename.deciding import Decided
from engines.rename.documents import Document, Documents
from engines.rename.imports import Imports
from engines.rename.members import class_at, defining_classes, key_of, member_places
from engines.rename.module_names import ModuleNames
from engines.rename.scopes import MODULE, Place, Variable, seen_from
from engines.rename.target import Kind, Target
from schemas.errors import ContractError, at_key


def check_names(symbol: str, to: str) -> None:
    """Raises ContractError if one of the names cannot be one."""
    with at_key("to"):
        _check_new(to)
    with at_key("symbol"):
        _check_old(symbol, to)


def _check_new(to: str) -> None:
    if keyword.iskeyword(to):
        raise ContractError(
            f"{to!r} is a keyword of Python, so nothing can be called that.",
            suggestion="Choose another name.",
        )
    if not to.isidentifier() or unicodedata.normalize("NFKC", to) != to:
        raise ContractError(
            f"{to!r} is no identifier.", suggestion="`to` is the new name alone, without its module."
        )


def _check_old(symbol: str, to: str) -> None:
    parts = symbol.rpartition(":")[2].split(".")
    if not all(part.isidentifier() for part in parts) or (":" not in symbol and len(parts) < 2):
        raise ContractError(
            f"{symbol!r} names no symbol.",
            suggestion="Write it as package.module.name or path/to/file.py:name.",
        )
    if parts[-1] == to:
        raise ContractError(f"The old and the new name are both {to!r}, so nothing would change.")
    if parts[-1].startswith("__") and parts[-1].endswith("__"):
        raise ContractError(
            f"{parts[-1]} is a name that Python itself looks for.", suggestion="Rename something else."
        )


def check_free(
    target: Target, to: str, decided: Decided, documents: Documents, imports: Imports, names: ModuleNames
) -> None:
    """Raises ContractError with the place if the new name is taken."""
    for path, mine in decided.verdicts.files.items():
        document = documents.get(path)
        if document is None:
            continue
        for variable in mine.variables:
            _check_variable(document, imports, variable, to, target)
    if target.kind is Kind.MODULE_NAME:
        for path in target.paths:
            if names.submodule((path,), to):
                raise _taken(names.submodule((path,), to)[0], 1, to, "is a module of the same package")
        return
    _check_members(target, to, decided, documents, imports)


def _check_variable(
    document: Document, imports: Imports, variable: Variable, to: str, target: Target
) -> None:
    there = imports.places(document, to).variables.get(variable.scope)
    if there is not None and there.places:
        first = min(there.bindings or there.places, key=lambda one: one.start)
        line = document.line(first.start)
        if there.bindings:
            raise _taken(document.path, line, to, f"exists there already, beside {target.name}")
        if variable.kind == MODULE:
            raise _taken(document.path, line, to, "means something else there, which the new name would hide")
    if to not in document.text:
        return
    for place in variable.places:
        seen = seen_from(document, to, place.node)
        if seen is not None and seen.scope != variable.scope and _is_within(seen, variable):
            raise _taken(
                document.path,
                _first_line(document, seen),
                to,
                f"would hide the new name at line {document.line(place.start)}",
            )


def _check_members(target: Target, to: str, decided: Decided, documents: Documents, imports: Imports) -> None:
    family, hierarchy = decided.family, decided.hierarchy
    assert family is not None
    assert hierarchy is not None
    for base in family.outside:
        if base.defines:
            raise ContractError(
                f"{base.holder.path}: {target.name} overrides that of {base.name}, which is not in this repository.",
                suggestion="Its callers would no longer find it; rename something else.",
            )
    above = {one for key in family.classes for one in hierarchy.ancestors(key)} | family.classes
    for key in sorted(above):
        document = documents.get(key.path)
        node = class_at(document, key.position) if document is not None else None
        taken = (
            member_places(imports.places(document, to), node)
            if document is not None and node is not None
            else []
        )
        if taken and document is not None:
            raise _taken(
                key.path, document.line(taken[0].start), to, "exists there already, in the same classes"
            )
    for document in documents.having(to):
        places = imports.places(document, to)
        for node in defining_classes(places):
            if hierarchy.ancestors(key_of(document, node)) & family.classes:
                first: Place = member_places(places, node)[0]
                raise _taken(
                    document.path, document.line(first.start), to, "exists in a class that inherits from it"
                )


def _is_within(inner: Variable, outer: Variable) -> bool:
    if outer.kind == MODULE:
        return inner.kind != MODULE
    return outer.scope[0] <= inner.scope[0] and inner.scope[1] <= outer.scope[1]


def _first_line(document: Document, variable: Variable) -> int:
    return document.line(min(one.start for one in variable.bindings))


def _taken(path: str, line: int, to: str, why: str) -> ContractError:
    return ContractError(
        f"{path}:{line}: {to!r} {why}.", suggestion="Choose another name, or rename that one first."
    )

"""Decides every place of the name: by scopes where Python decides by looking, by types for attributes.

pyrefly answers from what is written, jedi is asked where it cannot tell. A place for which they name definitions both
inside and outside of the symbol stays open: either choice would break the other.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from engines.rename.chains import Chains
from engines.rename.definitions import Definitions, Spot
from engines.rename.documents import Document, Documents
from engines.rename.hierarchy import Family, Hierarchy
from engines.rename.imports import Imports, Meaning, imported_targets
from engines.rename.listed import listed_in_all, listed_in_class
from engines.rename.members import class_at, key_of, member_places, owner_of_receiver, self_assignments
from engines.rename.module_names import ModuleNames
from engines.rename.scopes import MODULE, NamePlaces, Place, Role, Variable
from engines.rename.target import Kind, Target
from engines.rename.verdicts import By, Verdicts
from schemas.errors import ContractError

_UNKNOWN = "the type of what stands before the dot is not known"
_UNASKED = "the type of what stands before the dot is not written, and there was no more room to guess it"


@dataclass(slots=True)
class Decided:
    """The verdicts, and for a member the classes that share it."""

    verdicts: Verdicts
    family: Family | None = None
    hierarchy: Hierarchy | None = None


def decide(
    target: Target,
    documents: Documents,
    names: ModuleNames,
    imports: Imports,
    definitions: Callable[[], Definitions],
) -> Decided:
    """Decide all places. `definitions` starts the servers; it is called only if types are needed."""
    if target.kind is Kind.MEMBER:
        return _member(target, documents, imports, definitions())
    return Decided(_module_name(target, documents, names, imports, definitions))


def _module_name(
    target: Target,
    documents: Documents,
    names: ModuleNames,
    imports: Imports,
    definitions: Callable[[], Definitions],
) -> Verdicts:
    verdicts = Verdicts()
    meaning = Meaning(documents, imports, target.name, frozenset(target.paths))
    chains = Chains(documents, names, imports)
    asked: list[tuple[str, Place]] = []
    for document in documents.having(target.name):
        places = imports.places(document, target.name)
        mine = verdicts.of(document.path)
        for variable in places.variables.values():
            if _is_target(variable, document, meaning):
                _check_bindings(document, variable, partial(meaning.of_binding, document))
                mine.take(variable.places, By.SCOPES)
                mine.variables.append(variable)
            else:
                mine.others.update(one.span for one in variable.places)
        mine.take(imported_targets(places, meaning), By.SCOPES)
        if meaning.in_module(document.path):
            mine.symbol.update((span, By.SCOPES) for span in listed_in_all(document, target.name))
        mine.others.update(
            one.span
            for one in places.others
            if one.role is not Role.ATTRIBUTE and one.span not in mine.symbol
        )
        for place in places.with_role(Role.ATTRIBUTE):
            answer = _by_chain(document, place, chains, meaning, imports)
            if answer is None:
                asked.append((document.path, place))
            elif answer:
                mine.take([place], By.SCOPES)
            else:
                mine.others.add(place.span)
    if asked:
        _ask(asked, verdicts, definitions(), infer=False)
    return verdicts


def _check_bindings(document: Document, variable: Variable, means_it: Callable[[Place], bool]) -> None:
    """Raises ContractError if the variable also gets its value by an import whose name is not ours to change."""
    for binding in variable.bindings:
        parent = binding.node.parent()
        is_bare_import = parent is not None and parent.kind() == "dotted_name" and not binding.in_quotes
        if is_bare_import and not means_it(binding):
            raise ContractError(
                f"{document.path}:{document.line(binding.start)}: the same name is also imported from elsewhere.",
                suggestion="Give that import an `as` first; then both can be renamed.",
            )


def _by_chain(
    document: Document, place: Place, chains: Chains, meaning: Meaning, imports: Imports
) -> bool | None:
    """Whether the attribute of a module is the symbol; None if what stands before the dot is no module for sure."""
    attribute = place.node.parent()
    receiver = attribute.field("object") if attribute is not None and not place.in_quotes else None
    files = chains.module_of(document, receiver) if receiver is not None else ()
    if any(meaning.in_module(path) for path in files):
        return True
    return False if any(imports.origins(path, place.node.text()) for path in files) else None


def _is_target(variable: Variable, document: Document, meaning: Meaning) -> bool:
    if variable.kind == MODULE:
        return meaning.in_module(document.path)
    return any(meaning.of_binding(document, one) for one in variable.bindings)


def _member(target: Target, documents: Documents, imports: Imports, definitions: Definitions) -> Decided:
    verdicts = Verdicts()
    hierarchy = Hierarchy(documents, imports, definitions, target.name)
    family = hierarchy.family(target.classes)
    is_field = False
    asked: list[tuple[str, Place]] = []
    for document in documents.having(target.name):
        places = imports.places(document, target.name)
        mine = verdicts.of(document.path)
        for key in [one for one in sorted(family.classes) if one.path == document.path]:
            node = class_at(document, key.position)
            if node is None:
                continue
            defining = member_places(places, node)
            mine.take(defining, By.SCOPES)
            mine.symbol.update((span, By.SCOPES) for span in listed_in_class(document, target.name, node))
            is_field = is_field or any(not _is_definition(one) for one in defining)
        _sort_variables(places, document, family, verdicts)
        fixed = _of_strangers(places, document, family)
        mine.others.update(fixed)
        asked += [
            (document.path, one)
            for one in places.others
            if one.role in (Role.ATTRIBUTE, Role.KEYWORD)
            and one.span not in mine.symbol
            and one.span not in fixed
        ]
        mine.others.update(one.span for one in places.others if one.role in (Role.IMPORTED, Role.MODULE))
    if not is_field:
        for path, place in [one for one in asked if one[1].role is Role.KEYWORD]:
            verdicts.of(path).others.add(place.span)
        asked = [one for one in asked if one[1].role is not Role.KEYWORD]
    _ask(asked, verdicts, definitions, infer=True)
    for path, place in asked:
        if place.span in verdicts.of(path).open and _is_self_of_family(
            documents, path, place, family, hierarchy
        ):
            del verdicts.of(path).open[place.span]
            verdicts.of(path).take([place], By.SCOPES)
    if not family.strangers:
        _note_only_one(verdicts, target.name)
    return Decided(verdicts, family, hierarchy)


def _is_self_of_family(
    documents: Documents, path: str, place: Place, family: Family, hierarchy: Hierarchy
) -> bool:
    """True for `self.NAME` in a class without the member, if a class made of it and others gets it from the family."""
    document = documents.get(path)
    attribute = place.node.parent()
    owner = owner_of_receiver(attribute) if attribute is not None and not place.in_quotes else None
    if document is None or owner is None:
        return False
    heirs = hierarchy.heirs_of(key_of(document, owner))
    return any(hierarchy.ancestors(heir) & family.classes for heir in heirs)


def _note_only_one(verdicts: Verdicts, name: str) -> None:
    """Where no other class has such a member, a reader may decide more easily: say so."""
    for mine in verdicts.files.values():
        for span, reason in mine.open.items():
            if reason in (_UNKNOWN, _UNASKED):
                mine.open[span] = f"{reason}; no other class of this repository has {name}"


def _sort_variables(places: NamePlaces, document: Document, family: Family, verdicts: Verdicts) -> None:
    mine = verdicts.of(document.path)
    for variable in places.variables.values():
        if variable.kind == "class_definition" and key_of(document, variable.node) in family.classes:
            _check_bindings(document, variable, lambda _: False)
            mine.take(variable.places, By.SCOPES)
            mine.variables.append(variable)
        else:
            mine.others.update(one.span for one in variable.places)


def _of_strangers(places: NamePlaces, document: Document, family: Family) -> set[tuple[int, int]]:
    return {
        place.span
        for place, owner in self_assignments(places)
        if key_of(document, owner) not in family.classes
    }


def _is_definition(place: Place) -> bool:
    parent = place.node.parent()
    return parent is not None and parent.kind() in ("function_definition", "class_definition")


def _ask(
    asked: Sequence[tuple[str, Place]], verdicts: Verdicts, definitions: Definitions, *, infer: bool
) -> None:
    """Ask by types; `infer` asks jedi too, which for the rare name of a module behind a parameter is not worth it."""
    ours = frozenset(verdicts.spots())
    spots = [Spot(path, place.start) for path, place in asked]
    for (path, place), spot, found in zip(asked, spots, definitions.typed(spots), strict=True):
        by = By.PYREFLY
        if any(definitions.is_constructor(one) for one in found):
            found = ()  # of a call of a class pyrefly names what makes the instance, which may be inherited
        may_ask = infer and place.role is Role.ATTRIBUTE and not place.in_quotes
        if not found and may_ask and definitions.jedi.is_spent:
            verdicts.of(path).open[place.span] = _UNASKED
            continue
        if not found and may_ask:
            found, by = definitions.inferred(spot), By.JEDI
        _note(verdicts, path, place, found, ours, by, definitions)


def _note(
    verdicts: Verdicts,
    path: str,
    place: Place,
    found: Iterable[Spot],
    ours: frozenset[tuple[str, int]],
    by: By,
    definitions: Definitions,
) -> None:
    mine = verdicts.of(path)
    inside = [one for one in found if not one.is_outside and (one.path, one.position) in ours]
    outside = [one for one in found if one not in inside]
    if inside and not outside:
        mine.symbol[place.span] = by
    elif inside:
        mine.open[place.span] = f"may also mean what {_where(outside[0], definitions)} defines"
    elif outside or place.role is Role.KEYWORD:
        mine.others.add(place.span)
    else:
        mine.open[place.span] = _UNKNOWN


def _where(spot: Spot, definitions: Definitions) -> str:
    if spot.is_outside:
        return "something outside of this repository"
    return f"{spot.path}:{definitions.line(spot)}"

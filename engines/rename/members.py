"""What a class defines itself: names bound in its body, and attributes of `self` that its methods assign."""

from collections.abc import Iterator
from dataclasses import dataclass

from ast_grep_py import SgNode

from engines.rename.documents import Document
from engines.rename.scopes import NamePlaces, Place, Role, is_same
from engines.syntax import span_of

_ASSIGNMENTS = frozenset({"assignment", "augmented_assignment", "for_statement", "with_item"})
_PATTERNS = frozenset(
    {"pattern_list", "tuple_pattern", "list_pattern", "as_pattern_target", "as_pattern", "expression_list"}
)


@dataclass(frozen=True, slots=True, order=True)
class ClassKey:
    """A class by its file and the position of its name."""

    path: str
    position: int


def key_of(document: Document, node: SgNode) -> ClassKey:
    """The key of a class definition."""
    return ClassKey(document.path, span_of(node.field("name") or node)[0])


def class_at(document: Document, position: int) -> SgNode | None:
    """The class definition whose name stands at a position."""
    name = document.identifier_at(position)
    parent = name.parent() if name is not None else None
    return parent if parent is not None and parent.kind() == "class_definition" else None


def member_places(places: NamePlaces, node: SgNode) -> list[Place]:
    """The places in a class that define the name as its member; empty if it does not."""
    span = span_of(node)
    variable = places.variables.get(span)
    own = variable.bindings if variable is not None and variable.kind == "class_definition" else []
    return [*own, *(place for place, owner in self_assignments(places) if span_of(owner) == span)]


def defining_classes(places: NamePlaces) -> list[SgNode]:
    """The classes of a file that define the name as a member."""
    found: dict[tuple[int, int], SgNode] = {}
    for variable in places.variables.values():
        if variable.kind == "class_definition" and variable.bindings:
            found.setdefault(variable.scope, variable.node)
    for _, owner in self_assignments(places):
        found.setdefault(span_of(owner), owner)
    return [found[span] for span in sorted(found)]


def self_assignments(places: NamePlaces) -> Iterator[tuple[Place, SgNode]]:
    """(place, class) of every `self.NAME = ...` in a method, whatever `self` is called there."""
    for place in places.with_role(Role.ATTRIBUTE):
        if place.in_quotes:
            continue
        attribute = place.node.parent()
        if attribute is None or not _is_assigned(attribute):
            continue
        owner = owner_of_receiver(attribute)
        if owner is not None:
            yield place, owner


def owner_of_receiver(attribute: SgNode) -> SgNode | None:
    """The class whose instance `x` in `x.attribute` is, if `x` is the first parameter of a method around it."""
    receiver = attribute.field("object")
    if receiver is None or receiver.kind() != "identifier":
        return None
    for function in attribute.ancestors():
        if function.kind() == "class_definition":
            return None
        if function.kind() != "function_definition":
            continue
        owner = _class_of(function)
        if owner is not None:
            return owner if _first_parameter(function) == receiver.text() else None
    return None


def class_body_names(document: Document, node: SgNode) -> list[str]:
    """The names that a class binds in its body, for a hint."""
    found: list[str] = []
    body = node.field("body")
    for child in body.children() if body is not None else ():
        one = child.field("definition") or child
        if one.kind() == "expression_statement" and one.children():
            one = one.children()[0]
        name = one.field("name") or one.field("left")
        if name is not None and name.kind() == "identifier":
            found.append(name.text())
    return found


def _is_assigned(attribute: SgNode) -> bool:
    child, parent = attribute, attribute.parent()
    while parent is not None and parent.kind() in _PATTERNS:
        child, parent = parent, parent.parent()
    if parent is None or parent.kind() not in _ASSIGNMENTS:
        return False
    return parent.kind() == "with_item" or is_same(parent.field("left"), child)


def _class_of(function: SgNode) -> SgNode | None:
    """The class whose method a function is."""
    outer = function.parent()
    if outer is not None and outer.kind() == "decorated_definition":
        outer = outer.parent()
    while outer is not None and outer.kind() in (
        "block",
        "if_statement",
        "else_clause",
        "elif_clause",
        "try_statement",
    ):
        outer = outer.parent()
    return outer if outer is not None and outer.kind() == "class_definition" else None


def _first_parameter(function: SgNode) -> str:
    parameters = function.field("parameters")
    named = [one for one in parameters.children() if one.is_named()] if parameters is not None else []
    if not named:
        return ""
    first = named[0] if named[0].kind() == "identifier" else named[0].children()[0]
    return first.text()

"""Every place of one name in a file, and which of them are one variable by Python's rules of scope.

A function's defaults, annotations and decorators belong to the scope around it; a class body is not seen from the
functions in it; `global` and `nonlocal` point outwards. A variable is a scope and all the places that mean it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from ast_grep_py import SgNode

from engines.rename.documents import Document
from engines.rename.quoted import Quoted, quoted_names
from engines.syntax import Span, span_of

MODULE = "module"
_FUNCTIONS = frozenset({"function_definition", "lambda"})
_COMPREHENSIONS = frozenset(
    {"list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression"}
)
_SCOPES = _FUNCTIONS | _COMPREHENSIONS | {"class_definition", MODULE}
_PATTERNS = frozenset(
    {"pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern", "tuple", "list", "list_splat",
     "parenthesized_expression", "expression_list"}
)  # fmt: skip
_GENERIC = frozenset({"function_definition", "class_definition"})
_PARAMETERS = frozenset({"parameters", "lambda_parameters"})


class Role(StrEnum):
    """What a place of the name is."""

    USE = "use"
    BINDING = "binding"
    IMPORTED = "imported"
    """`from m import NAME`, with or without `as`: the name as the other module has it."""
    ATTRIBUTE = "attribute"
    KEYWORD = "keyword"
    MODULE = "module"
    """A part of a module's dotted name in an import."""


@dataclass(frozen=True, slots=True)
class Place:
    """One place of the name. `scope` is the span of the scope it is looked up from, `node` is absent in quotes."""

    span: Span
    role: Role
    scope: Span
    node: SgNode
    in_quotes: bool = False

    @property
    def start(self) -> int:
        """Where the word starts."""
        return self.span[0]


@dataclass(slots=True)
class Variable:
    """A variable of one scope: `kind` is the scope's kind of node, `places` are all that mean it."""

    scope: Span
    kind: str
    node: SgNode
    places: list[Place] = field(default_factory=list)

    @property
    def bindings(self) -> list[Place]:
        """The places that give it a value."""
        return [one for one in self.places if one.role in (Role.BINDING, Role.IMPORTED)]


@dataclass(slots=True)
class NamePlaces:
    """All places of a name in a file: its variables by scope, and what is no variable."""

    document: Document
    name: str
    variables: dict[Span, Variable] = field(default_factory=dict)
    others: list[Place] = field(default_factory=list)

    @property
    def module_variable(self) -> Variable | None:
        """The variable of the module, bound there or not."""
        return next((one for one in self.variables.values() if one.kind == MODULE), None)

    def with_role(self, role: Role) -> list[Place]:
        """The places with a role that are no variable."""
        return [one for one in self.others if one.role is role]


def places_of(document: Document, name: str) -> NamePlaces:
    """Find and sort all places of a name."""
    found = NamePlaces(document, name)
    plain: list[Place] = []
    outward: dict[Span, str] = {}
    nodes: dict[Span, SgNode] = {}
    for place, scope, declared in _places(document, name):
        nodes.setdefault(span_of(scope), scope)
        if declared:
            outward[place.scope] = declared
        if place.role in (Role.USE, Role.BINDING) or (
            place.role is Role.IMPORTED and not _is_renamed(place.node)
        ):
            plain.append(place)
        else:
            found.others.append(place)
    bound = {one.scope for one in plain if one.role is not Role.USE} - set(outward)
    first: dict[Span, Place] = {}
    for place in plain:
        if place.role is not Role.USE:
            first.setdefault(place.scope, place)
    for place in plain:
        start = nodes[place.scope]
        if start.kind() == "class_definition" and _is_before(place, first.get(place.scope)):
            start = scope_of(start)
        owner = _owner(document.root, start, bound, outward)
        span = span_of(owner)
        variable = found.variables.setdefault(span, Variable(span, owner.kind(), owner))
        variable.places.append(place)
    return found


def seen_from(document: Document, name: str, node: SgNode) -> Variable | None:
    """The variable that the name would mean at a node of the file; None if nothing binds it up to the module."""
    places = places_of(document, name)
    bound = {span for span, one in places.variables.items() if one.bindings}
    scope = scope_of(node)
    owner = _owner(document.root, scope, bound, {})
    return places.variables.get(span_of(owner)) if span_of(owner) in bound else None


def scope_of(node: SgNode) -> SgNode:
    """The scope in which a name at this node is looked up first."""
    child, parent = node, node.parent()
    while parent is not None:
        kind = parent.kind()
        if kind in _SCOPES and _is_inside(parent, child, node):
            return parent
        child, parent = parent, parent.parent()
    return child


def is_same(one: SgNode | None, other: SgNode) -> bool:
    """True if both are the same node."""
    return one is not None and one.kind() == other.kind() and span_of(one) == span_of(other)


def _places(document: Document, name: str) -> Iterator[tuple[Place, SgNode, str]]:
    for node in document.identifiers(name):
        role, declared = _role(node)
        scope = scope_of(node)
        if role is Role.BINDING and _is_walrus(node):
            while scope.kind() in _COMPREHENSIONS:
                scope = scope_of(scope)
        yield Place(span_of(node), role, span_of(scope), node), scope, declared
    quoted: Quoted
    for quoted in quoted_names(document, name):
        scope = scope_of(quoted.string)
        role = Role.ATTRIBUTE if quoted.is_attribute else Role.USE
        yield Place(quoted.span, role, span_of(scope), quoted.string, in_quotes=True), scope, ""


def _role(node: SgNode) -> tuple[Role, str]:
    """The role of an identifier, and `global` or `nonlocal` if it is declared so here."""
    parent = node.parent()
    assert parent is not None
    kind = parent.kind()
    if kind == "attribute":
        return (Role.ATTRIBUTE if is_same(parent.field("attribute"), node) else Role.USE), ""
    if kind in ("keyword_argument", "keyword_pattern"):
        first = parent.children()[0]
        return (Role.KEYWORD if is_same(first, node) else Role.USE), ""
    if kind in ("global_statement", "nonlocal_statement"):
        return Role.USE, kind.partition("_")[0]
    if kind in ("dotted_name", "aliased_import"):
        return _role_in_import(node, parent), ""
    return (Role.BINDING if _binds(node, parent) else Role.USE), ""


def _role_in_import(node: SgNode, parent: SgNode) -> Role:
    if parent.kind() == "aliased_import":  # the name after `as`
        return Role.BINDING
    holder = parent.parent()
    if holder is None:
        return Role.USE
    if holder.kind() in ("case_pattern", "class_pattern", "keyword_pattern"):
        is_only = len(parent.children()) == 1
        if holder.kind() == "case_pattern" and is_only:
            return Role.BINDING
        return Role.USE if is_same(parent.children()[0], node) else Role.ATTRIBUTE
    outer = holder.parent() if holder.kind() == "aliased_import" else holder
    if outer is not None and outer.kind() in ("import_from_statement", "future_import_statement"):
        return Role.MODULE if is_same(outer.field("module_name"), parent) else Role.IMPORTED
    if holder.kind() == "import_statement" and is_same(parent.children()[0], node):
        return Role.BINDING  # `import NAME.more` binds NAME
    return (
        Role.MODULE
        if outer is not None
        and outer.kind() in ("import_statement", "relative_import", "import_from_statement")
        else Role.USE
    )


def _is_renamed(node: SgNode) -> bool:
    """True for the name before `as` in a from-import: it is no variable here."""
    parent = node.parent()
    holder = parent.parent() if parent is not None else None
    return holder is not None and holder.kind() == "aliased_import"


def _binds(node: SgNode, parent: SgNode) -> bool:
    kind = parent.kind()
    if kind in ("function_definition", "class_definition"):
        return is_same(parent.field("name"), node)
    if kind in _PARAMETERS or kind in ("as_pattern_target", "dictionary_splat_pattern"):
        return True
    if kind in ("default_parameter", "typed_default_parameter", "named_expression"):
        return is_same(parent.field("name"), node)
    if kind == "typed_parameter":
        return is_same(parent.children()[0], node)
    if kind in ("assignment", "augmented_assignment", "for_statement", "for_in_clause"):
        return is_same(parent.field("left"), node)
    if kind in ("type_parameter", "delete_statement", "splat_pattern", "case_pattern", "as_pattern"):
        return kind != "as_pattern" or is_same(parent.children()[-1], node)
    if kind == "type":
        return _is_declared_type(parent)
    if kind in _PATTERNS:
        outer = parent.parent()
        return outer is not None and _binds(parent, outer)
    return False


def _is_declared_type(node: SgNode) -> bool:
    """True for NAME in `type NAME = ...` and in the type parameters of a definition."""
    parent = node.parent()
    if parent is None:
        return False
    if parent.kind() == "type_alias_statement":
        return is_same(parent.field("left") or parent.children()[1], node)
    holder = parent.parent()
    # The grammar calls the arguments of `list[X]` type parameters too.
    return parent.kind() == "type_parameter" and holder is not None and holder.kind() in _GENERIC


def _declares_type(scope: SgNode, name: str) -> bool:
    """True if the definition has a type parameter of this name (PEP 695), which its annotations see."""
    parameters = scope.field("type_parameters")
    return parameters is not None and any(
        one.text() == name for one in parameters.find_all(kind="identifier")
    )


def _is_walrus(node: SgNode) -> bool:
    parent = node.parent()
    return parent is not None and parent.kind() == "named_expression"


def _is_inside(scope: SgNode, child: SgNode, node: SgNode) -> bool:
    """True if what stands in `child` (a child of `scope`) is looked up in the scope itself."""
    kind = scope.kind()
    if kind == MODULE:
        return True
    if kind in _GENERIC and not is_same(scope.field("name"), node) and _declares_type(scope, node.text()):
        return True
    if kind == "class_definition":
        return is_same(scope.field("body"), child)
    if kind in _FUNCTIONS:
        if child.kind() in _PARAMETERS:
            return _is_parameter(node)
        return is_same(scope.field("body"), child)
    # The first iterable of a comprehension is looked up outside.
    first = next((one for one in scope.children() if one.kind() == "for_in_clause"), None)
    right = first.field("right") if first is not None else None
    return right is None or not _holds(right, node)


def _is_parameter(node: SgNode) -> bool:
    parent = node.parent()
    while parent is not None and parent.kind() in (
        "list_splat_pattern",
        "dictionary_splat_pattern",
        "tuple_pattern",
    ):
        node, parent = parent, parent.parent()
    return parent is not None and _binds(node, parent)


def _holds(outer: SgNode, inner: SgNode) -> bool:
    start, end = span_of(outer)
    return start <= span_of(inner)[0] and span_of(inner)[1] <= end


def _is_before(place: Place, binding: Place | None) -> bool:
    """True for a use in a class body before the name is bound there (`name = name`): it means the scope around."""
    if binding is None or place.role is not Role.USE:
        return False
    statement = binding.node.parent()
    own = statement is not None and statement.kind() == "assignment" and _holds(statement, place.node)
    return place.start < binding.start or own


def _owner(root: SgNode, start: SgNode, bound: set[Span], outward: dict[Span, str]) -> SgNode:
    scope = start
    how = outward.get(span_of(start), "")
    if how == "global":
        return root
    is_first = not how
    while scope.kind() != MODULE:
        if span_of(scope) in bound and (is_first or scope.kind() != "class_definition"):
            return scope
        scope = scope_of(scope)
        is_first = False
        if outward.get(span_of(scope)) == "global":
            return root
    return scope

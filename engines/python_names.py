"""Who binds and who uses a name in a Python file, by the language's scoping rules.

Read from ast-grep's tree rather than `ast`, so that a file in newer (or older) Python than the one that runs us is
judged as well. What is not understood counts as a use and as a binding: the careful answer to both questions.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from ast_grep_py import SgNode

from engines.syntax import Span, span_of

_IMPORT_KINDS = frozenset({"import_statement", "import_from_statement", "future_import_statement"})
_FUNCTIONS = frozenset({"function_definition", "lambda"})
_COMPREHENSIONS = frozenset(
    {"list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression"}
)
_SCOPES = _FUNCTIONS | _COMPREHENSIONS | {"class_definition"}
_TARGET_PARTS = frozenset(
    {
        "pattern_list",
        "tuple_pattern",
        "list_pattern",
        "list_splat_pattern",
        "parenthesized_expression",
        "tuple",
        "list",
    }
)
_PARAMETER_LISTS = frozenset({"parameters", "lambda_parameters"})
_PARAMETERS = frozenset(
    {
        "default_parameter",
        "typed_default_parameter",
        "typed_parameter",
        "list_splat_pattern",
        "dictionary_splat_pattern",
        "tuple_pattern",
    }
)
_CAST_LIKE = re.compile(
    r"(^|\.)(cast|TypeVar|NewType|ForwardRef|NamedTuple|TypedDict|TypeAliasType|ParamSpec)$"
)


# Who reads text as code.
ALL, ANNOTATION, DOCTEST, TYPE_COMMENT = "`__all__`", "an annotation in quotes", "a doctest", "a type comment"


class Role(Enum):
    """What an occurrence of a name does."""

    USE = auto()
    BIND = auto()
    BOTH = auto()
    IMPORT = auto()
    NOTHING = auto()
    """An attribute, a keyword, or another word that is no name."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A function, class, lambda, comprehension or the module, known by its kind and span."""

    kind: str
    span: Span


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at a place; `chain` are the scopes that are looked through for it, from the inside out."""

    node: SgNode
    at: int
    role: Role
    chain: tuple[Scope, ...]


class Names:
    """The names of one parsed file."""

    def __init__(self, root: SgNode) -> None:
        self._root = root
        self._known: dict[str, tuple[Occurrence, ...]] = {}
        self._bound: dict[str, list[Occurrence]] = {}

    @cached_property
    def module(self) -> Scope:
        """The outermost scope."""
        return Scope("module", span_of(self._root))

    def occurrences(self, name: str) -> tuple[Occurrence, ...]:
        """Every place where the name stands as a word of code."""
        if name not in self._known:
            self._known[name] = tuple(self._occurrence(node) for node in self._words.get(name, ()))
        return self._known[name]

    @cached_property
    def _words(self) -> dict[str, list[SgNode]]:
        """Every word of code: one walk of the tree for all the names that will be asked for."""
        words: dict[str, list[SgNode]] = {}
        for node in self._root.find_all(kind="identifier"):
            words.setdefault(node.text(), []).append(node)
        return words

    def bindings(self, name: str, scope: Scope) -> list[Occurrence]:
        """Where the scope binds the name, other than by importing it."""
        if name not in self._bound:
            self._bound[name] = [one for one in self.occurrences(name) if one.role in (Role.BIND, Role.BOTH)]
        return [one for one in self._bound[name] if one.chain[0] == scope]

    def chain_at(self, node: SgNode) -> tuple[Scope, ...]:
        """The scopes that a name at this node would be looked for in, from the inside out, the module last."""
        chain: list[Scope] = []
        child = node
        for parent in node.ancestors():
            # A class's names are seen by its own body only, not by the functions in it.
            is_seen = parent.kind() != "class_definition" or not chain
            if parent.kind() in _SCOPES and is_seen and _is_inside(parent, child):
                chain.append(Scope(parent.kind(), span_of(parent)))
            child = parent
        return (*chain, self.module)

    def uses(self, name: str) -> Iterator[Occurrence]:
        """Every use."""
        return (one for one in self.occurrences(name) if one.role in (Role.USE, Role.BOTH))

    def binds_in_function(
        self, name: str, chain: tuple[Scope, ...], imports: frozenset[Scope]
    ) -> Scope | None:
        """The innermost scope short of the module that binds the name; `imports` are scopes that import it."""
        for scope in chain[:-1]:
            if scope in imports or self.bindings(name, scope):
                return scope
        return None

    def named_in_text(self, name: str) -> str:
        """What text that is read as code names it: `__all__`, an annotation, a doctest, a type comment; or nothing."""
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        for node in self._root.find_all(kind="string_content", regex=rf"\b{re.escape(name)}\b"):
            reader = _reader_of(node, name) if word.search(node.text()) else ""
            if reader:
                return reader
        for node in self._root.find_all(kind="comment", regex=r"^#\s*type:"):
            if word.search(node.text()) and not re.match(r"#\s*type:\s*ignore", node.text()):
                return TYPE_COMMENT
        return ""

    def _occurrence(self, node: SgNode) -> Occurrence:
        role = role_of(node)
        chain = self.chain_at(node)
        if role in (Role.BIND, Role.BOTH):
            chain = _binding_chain(node, chain, self.module)
        return Occurrence(node, span_of(node)[0], role, chain)


def _is_inside(scope: SgNode, child: SgNode) -> bool:
    """True if the child is looked up inside the scope, not around it (a default, a decorator, a base class)."""
    kind = scope.kind()
    if kind == "class_definition":
        return child.kind() == "block"
    if kind in _COMPREHENSIONS:
        # The first iterable is evaluated outside, but a name that the comprehension binds cannot be meant there.
        return True
    if kind == "lambda":
        return child.kind() != "lambda_parameters"
    return child.kind() == "block"


def _binding_chain(node: SgNode, chain: tuple[Scope, ...], module: Scope) -> tuple[Scope, ...]:
    """The chain that starts with the scope in which this occurrence binds its name."""
    for parent in node.ancestors():
        if parent.kind() in _PARAMETER_LISTS:
            owner = parent.parent()
            return (Scope(owner.kind(), span_of(owner)), *chain) if owner is not None else chain
        if parent.kind() == "global_statement":
            return (module,)
        if parent.kind() == "named_expression":
            outside = tuple(scope for scope in chain if scope.kind not in _COMPREHENSIONS)
            return outside or chain
        if parent.kind() == "type_parameter":
            owner = parent.parent()
            return (Scope(owner.kind(), span_of(owner)), *chain) if owner is not None else chain
        if parent.kind().endswith("statement") or parent.kind() in _SCOPES:
            break
    return chain


def role_of(node: SgNode) -> Role:
    """What a word of code does where it stands."""
    parent = node.parent()
    if parent is None:
        return Role.BOTH
    kind = parent.kind()
    before, after = node.prev(), node.next()
    if kind == "attribute":
        return Role.NOTHING if before is not None and before.kind() == "." else Role.USE
    if kind == "keyword_argument":
        return Role.NOTHING if after is not None and after.kind() == "=" else Role.USE
    if kind == "keyword_pattern":
        return Role.NOTHING if before is None else Role.BIND
    if kind == "dotted_name":
        return _role_in_dotted_name(node, parent)
    if kind == "aliased_import" or any(one.kind() in _IMPORT_KINDS for one in node.ancestors()):
        return Role.IMPORT
    if kind in ("function_definition", "class_definition"):
        return Role.BIND if _is_field(parent, "name", node) else Role.USE
    if kind in _PARAMETER_LISTS:
        return Role.BIND
    if kind in ("default_parameter", "typed_default_parameter"):
        return Role.BIND if _is_field(parent, "name", node) else Role.USE
    if kind == "typed_parameter":
        return Role.BIND
    if kind in ("global_statement", "nonlocal_statement", "as_pattern_target", "splat_pattern"):
        return Role.BIND
    if kind == "as_pattern":
        return Role.BIND if before is not None and before.kind() == "as" else Role.USE
    if kind == "named_expression":
        return Role.BIND if _is_field(parent, "name", node) else Role.USE
    if kind == "delete_statement":
        return Role.BOTH
    return _role_in_target(node)


def _role_in_dotted_name(node: SgNode, parent: SgNode) -> Role:
    kinds = [one.kind() for one in parent.ancestors()]
    if any(kind in _IMPORT_KINDS for kind in kinds):
        return Role.IMPORT
    if node.prev() is not None:
        return Role.NOTHING
    if len(parent.children()) == 1 and kinds and kinds[0] in ("case_pattern", "keyword_pattern"):
        return Role.BIND if node.text() != "_" else Role.NOTHING
    return Role.USE


def _role_in_target(node: SgNode) -> Role:
    """USE, unless the name is (a part of) what something is assigned to."""
    child = node
    for parent in node.ancestors():
        kind = parent.kind()
        if kind in ("assignment", "for_statement", "for_in_clause"):
            return Role.BIND if _is_field(parent, "left", child) else Role.USE
        if kind == "augmented_assignment":
            return Role.BOTH if _is_field(parent, "left", child) else Role.USE
        if kind == "as_pattern_target":
            return Role.BIND
        if kind == "delete_statement":
            return Role.BOTH
        if kind == "type_alias_statement":
            return Role.BIND if _is_field(parent, "left", child) else Role.USE
        if kind in _PARAMETER_LISTS:
            return Role.BIND if child.kind() in _PARAMETERS else Role.USE
        if kind in ("typed_parameter", "default_parameter", "typed_default_parameter"):
            if child.kind() not in _PARAMETERS:
                return Role.USE
        elif kind == "type" and any(one.kind() == "type_alias_statement" for one in parent.ancestors()[:2]):
            pass
        elif kind not in _TARGET_PARTS and kind not in _PARAMETERS and kind != "expression_list":
            return Role.USE
        child = parent
    return Role.USE


def _is_field(parent: SgNode, field: str, child: SgNode) -> bool:
    found = parent.field(field)
    return found is not None and span_of(found) == span_of(child)


def _reader_of(node: SgNode, name: str) -> str:
    """Who reads this string as code and finds the name in it, or nothing."""
    text = node.text()
    prompts = [line for line in text.splitlines() if line.lstrip().startswith((">>>", "..."))]
    if ">>>" in text and any(name in line for line in prompts):
        return DOCTEST
    for parent in node.ancestors():
        kind = parent.kind()
        if kind == "type" or (kind == "subscript" and _is_type_like(parent)):
            return ANNOTATION
        if kind == "call":
            called = parent.field("function")
            if called is not None and _CAST_LIKE.search(called.text()):
                return ANNOTATION
        if kind == "expression_statement" and text == name and re.match(r"__all__\b", parent.text()):
            return ALL
        if kind.endswith(("statement", "definition")) and kind != "expression_statement":
            return ""
    return ""


def _is_type_like(subscript: SgNode) -> bool:
    base = subscript.field("value")
    last = (base.text() if base is not None else "").rpartition(".")[2]
    return last[:1].isupper() or last in ("list", "dict", "tuple", "set", "type", "frozenset")

"""Names in quotes that Python itself reads as names: `__all__` of a module, `__slots__` and `__match_args__` of a class."""

from collections.abc import Iterator

from ast_grep_py import SgNode

from engines.rename.documents import Document
from engines.syntax import Span, span_of

_CHANGES = frozenset({"append", "extend", "insert", "remove"})
_LISTS = frozenset(
    {
        "list",
        "tuple",
        "set",
        "expression_list",
        "binary_operator",
        "parenthesized_expression",
        "argument_list",
    }
)


def listed_in_all(document: Document, name: str) -> Iterator[Span]:
    """The places of a name in the module's `__all__`."""
    yield from _listed(document, name, frozenset({"__all__"}), None)


def listed_in_class(document: Document, name: str, owner: SgNode) -> Iterator[Span]:
    """The places of a name in the class's `__slots__` and `__match_args__`."""
    yield from _listed(document, name, frozenset({"__slots__", "__match_args__"}), owner)


def _listed(document: Document, name: str, lists: frozenset[str], owner: SgNode | None) -> Iterator[Span]:
    if not any(one in document.text for one in lists):
        return
    for content in document.root.find_all(kind="string_content", regex=f"^{name}$"):
        string = content.parent()
        if string is None or string.kind() != "string" or _list_of(string) not in lists:
            continue
        around = next(
            (one for one in content.ancestors() if one.kind() in ("class_definition", "function_definition")),
            None,
        )
        if (around is None) == (owner is None) and (
            owner is None or span_of(around or owner) == span_of(owner)
        ):
            yield span_of(content)


def _list_of(string: SgNode) -> str:
    """The variable whose list the string is in; empty if it is in none."""
    child, parent = string, string.parent()
    while parent is not None and (parent.kind() in _LISTS or parent.kind() == "call"):
        if parent.kind() == "call":
            function = parent.field("function")
            method = (
                function.field("attribute")
                if function is not None and function.kind() == "attribute"
                else None
            )
            receiver = function.field("object") if method is not None and function is not None else None
            if method is not None and receiver is not None and method.text() in _CHANGES:
                return receiver.text()
            if function is None or function.text() not in ("list", "tuple", "set", "sorted"):
                return ""
        child, parent = parent, parent.parent()
    if parent is None or parent.kind() not in ("assignment", "augmented_assignment"):
        return ""
    left = parent.field("left")
    is_value = left is not None and span_of(left) != span_of(child)
    return left.text() if left is not None and is_value else ""

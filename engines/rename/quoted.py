"""Code in quotes: annotations as strings, and the type arguments of `cast` and `TypeVar`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ast_grep_py import SgNode, SgRoot

from engines.rename.documents import Document
from engines.syntax import Span, span_of

_TYPE_CALLS = frozenset({"cast", "TypeVar", "NewType", "ForwardRef"})
_PLAIN = re.compile(r"[A-Za-z_][\w.,\[\] |]*")


@dataclass(frozen=True, slots=True)
class Quoted:
    """The name in an annotation in quotes; `string` is the literal."""

    span: Span
    string: SgNode
    is_attribute: bool


def quoted_names(document: Document, name: str) -> Iterator[Quoted]:
    """Every place of the name in code in quotes."""
    if name not in document.text:
        return
    for content in document.root.find_all(kind="string_content", regex=rf"\b{re.escape(name)}\b"):
        string = content.parent()
        if string is None or not _is_code(string) or not _PLAIN.fullmatch(content.text().strip()):
            continue
        start = span_of(content)[0]
        for node in SgRoot(content.text(), "python").root().find_all(kind="identifier"):
            if node.text() != name:
                continue
            own_start, own_end = span_of(node)
            parent = node.parent()
            attribute = (
                parent.field("attribute") if parent is not None and parent.kind() == "attribute" else None
            )
            is_attribute = attribute is not None and span_of(attribute) == (own_start, own_end)
            yield Quoted((start + own_start, start + own_end), string, is_attribute)


def _is_code(string: SgNode) -> bool:
    """True if Python or a type checker reads the string as code."""
    child, parent = string, string.parent()
    while parent is not None:
        kind = parent.kind()
        if kind == "type":
            return not _is_plain_argument(parent)
        if kind == "subscript" and _is_plain_argument(child):
            return False
        if kind == "argument_list":
            call = parent.parent()
            function = call.field("function") if call is not None and call.kind() == "call" else None
            called = function.text().rpartition(".")[2] if function is not None else ""
            arguments = [one for one in parent.children() if one.is_named()]
            is_first = bool(arguments) and span_of(arguments[0]) == span_of(child)
            return called in _TYPE_CALLS and (is_first == (called in ("cast", "ForwardRef")))
        if kind == "keyword_argument":
            if (parent.children()[0].text()) != "bound":
                return False
        elif kind not in (
            "subscript",
            "generic_type",
            "binary_operator",
            "type_parameter",
            "list",
            "parenthesized_expression",
            "tuple",
            "union_type",
        ):
            return False
        child, parent = parent, parent.parent()
    return False


def _is_plain_argument(argument: SgNode) -> bool:
    """True for a string that stands for itself: in `Literal[...]`, and behind the type in `Annotated[...]`."""
    holder = argument.parent()
    if holder is not None and holder.kind() == "type_parameter":
        generic = holder.parent()
        arguments = [one for one in holder.children() if one.is_named()]
    else:
        generic = holder
        arguments = holder.children()[2:3] if holder is not None else []
    if generic is None or generic.kind() not in ("generic_type", "subscript"):
        return False
    name = generic.children()[0].text().rpartition(".")[2]
    is_first = bool(arguments) and span_of(arguments[0]) == span_of(argument)
    return name == "Literal" or (name == "Annotated" and not is_first)

"""The old name kept as an alias that warns (`alias: deprecated`).

A module hands it out by `__getattr__` (PEP 562), so that it is the same object as the new one: for a class, `isinstance`
and subclassing go on working. A method gets a method beside it that calls the new one.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from ast_grep_py import SgNode

from engines.edits import Edit, edited
from engines.layout import indent_at, newline_at
from engines.rename.documents import Document, read_document
from engines.rename.members import ClassKey, class_at
from engines.rename.scopes import places_of
from engines.syntax import span_of
from schemas.errors import ContractError

_INDENT = "    "
# How the alias is defined, and how it reaches the new name, by what decorates the method.
_SHAPES: Mapping[str, tuple[str, str, str]] = {
    "": ("", "self, *args, **kwargs", "self.{new}(*args, **kwargs)"),
    "classmethod": ("@classmethod", "cls, *args, **kwargs", "cls.{new}(*args, **kwargs)"),
    "staticmethod": ("@classmethod", "cls, *args, **kwargs", "cls.{new}(*args, **kwargs)"),
    "property": ("@property", "self", "self.{new}"),
}


def module_with_alias(path: str, data: bytes, old: str, new: str) -> bytes:
    """The file with an alias for a name of its module. Raises ContractError if the module has a `__getattr__`."""
    document = _document(path, data)
    newline = newline_at(document.text, len(document.text))
    end = "" if document.text.endswith("\n") or not document.text else newline
    if PurePosixPath(path).suffix == ".pyi":
        return _written(
            document, [Edit(len(document.text), len(document.text), f"{end}{old} = {new}{newline}")]
        )
    taken = document.identifiers("__getattr__")
    variable = places_of(document, "__getattr__").module_variable if taken else None
    if variable is not None and variable.bindings:
        raise ContractError(
            f"{path}:{document.line(variable.bindings[0].start)}: the module has a `__getattr__` already, so the alias has no place.",
            suggestion="Leave `alias` out and write it there by hand.",
        )
    lines = [
        "",
        "",
        "def __getattr__(name):",
        f'    if name == "{old}":',
        "        import warnings",
        "",
        *_warning(old, new, _INDENT * 2),
        f"        return {new}",
        '    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")',
        "",
    ]
    return _written(document, [Edit(len(document.text), len(document.text), end + newline.join(lines))])


def class_with_alias(path: str, data: bytes, chain: Sequence[str], old: str, new: str) -> bytes:
    """The file with an alias beside a method, in the class with these names from the outside in."""
    document = _document(path, data)
    node = next(
        one for one in document.root.find_all(kind="class_definition") if class_chain(one) == list(chain)
    )
    variable = places_of(document, new).variables.get(span_of(node))
    functions = [one.node.parent() for one in variable.bindings] if variable is not None else []
    last = functions[-1] if functions else None
    if last is None or any(one is None or one.kind() != "function_definition" for one in functions):
        raise ContractError(
            f"{path}: {'.'.join(chain)}.{old} is no method, and only methods and properties can keep an old name.",
            suggestion="Leave `alias` out.",
        )
    shape = _SHAPES.get(_decorator(functions, path, old))
    assert shape is not None
    decorator, parameters, value = shape
    whole = last.parent() if _is_decorated(last) else last
    assert whole is not None
    indent = indent_at(document.text, span_of(whole)[0])
    inner = _inner_indent(document, last, indent)
    newline = newline_at(document.text, span_of(whole)[0])
    lines = [
        *([f"{indent}{decorator}"] if decorator else []),
        f"{indent}def {old}({parameters}):",
        f'{inner}"""Deprecated: use `{new}`."""',
        f"{inner}import warnings",
        "",
        *_warning(f"{chain[-1]}.{old}", new, inner),
        f"{inner}return {value.format(new=new)}",
    ]
    at = document.text.find("\n", span_of(whole)[1])
    has_end = at >= 0
    place = at - (document.text[at - 1] == "\r") if has_end else len(document.text)
    return _written(document, [Edit(place, place, newline * 2 + newline.join(lines))])


def chain_of(document: Document, key: ClassKey) -> list[str]:
    """The names of a class from the outside in."""
    node = class_at(document, key.position)
    return class_chain(node) if node is not None else []


def class_chain(node: SgNode) -> list[str]:
    """The same of a class definition."""
    owners = [one for one in node.ancestors() if one.kind() in ("class_definition", "function_definition")]
    names = (one.field("name") for one in (*reversed(owners), node))
    return [name.text() for name in names if name is not None]


def _decorator(functions: Sequence[SgNode | None], path: str, old: str) -> str:
    """What decorates the method. Raises ContractError where an alias would not do the same."""
    decorators = [
        one.text().removeprefix("@").strip()
        for function in functions
        if function is not None and _is_decorated(function)
        for holder in [function.parent()]
        if holder is not None
        for one in holder.children()
        if one.kind() == "decorator"
    ]
    known = [one for one in decorators if one in _SHAPES]
    strange = [
        one for one in decorators if one.rpartition(".")[2] in ("setter", "deleter", "cached_property")
    ]
    if strange:
        raise ContractError(
            f"{path}: {old} is decorated by {strange[0]!r}, and an alias for that is not written.",
            suggestion="Leave `alias` out and write it by hand.",
        )
    return known[0] if known else ""


def _is_decorated(function: SgNode) -> bool:
    parent = function.parent()
    return parent is not None and parent.kind() == "decorated_definition"


def _inner_indent(document: Document, function: SgNode, indent: str) -> str:
    body = function.field("body")
    inner = indent_at(document.text, span_of(body)[0]) if body is not None else ""
    return inner if len(inner) > len(indent) else indent + ("\t" if indent.endswith("\t") else _INDENT)


def _warning(old: str, new: str, indent: str) -> list[str]:
    return [f'{indent}warnings.warn("{old} is deprecated, use {new}", DeprecationWarning, stacklevel=2)']


def _document(path: str, data: bytes) -> Document:
    document = read_document(path, data)
    assert isinstance(document, Document), document  # it was read before, and renaming broke nothing
    return document


def _written(document: Document, edits: Sequence[Edit]) -> bytes:
    return document.source.encode(edited(document.text, edits))

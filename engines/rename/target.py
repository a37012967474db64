"""Finds what is to be renamed: from the dotted name to the places that define it."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ast_grep_py import SgNode

from engines.rename.documents import Document, Documents
from engines.rename.imports import Imports
from engines.rename.members import ClassKey, class_body_names, member_places
from engines.rename.module_names import ModuleNames
from engines.syntax import span_of
from schemas.errors import ContractError
from schemas.suggest import nearest


class Kind(StrEnum):
    """What the symbol is."""

    MODULE_NAME = "module name"
    MEMBER = "member"


@dataclass(frozen=True, slots=True)
class Target:
    """The symbol: the files whose module defines it, or the classes whose member it is."""

    name: str
    kind: Kind
    dotted: str
    paths: tuple[str, ...]
    classes: tuple[ClassKey, ...] = ()


def locate(symbol: str, documents: Documents, names: ModuleNames, imports: Imports) -> Target:
    """The target of a symbol. Raises ContractError with the nearest names if it is not there."""
    return _Search(symbol, documents, names, imports).run()


class _Search:
    def __init__(self, symbol: str, documents: Documents, names: ModuleNames, imports: Imports) -> None:
        self._symbol = symbol
        self._documents = documents
        self._names = names
        self._imports = imports

    def run(self) -> Target:
        paths, chain = self._module()
        for path in paths:
            if path in self._documents.faults or self._documents.get(path) is None:
                raise ContractError(
                    f"{path}, which defines {self._symbol}, {self._documents.faults[path]}.",
                    suggestion="A name can only be renamed where its file can be read.",
                )
        origins = sorted({one for path in paths for one in self._imports.origins(path, chain[0])})
        if not origins:
            self._refuse(paths, chain[0])
        paths = tuple(path for path, _ in origins)
        if len(chain) == 1:
            name = origins[0][1]
            if name != chain[0]:
                raise ContractError(
                    f"{self._symbol} is only another name for {self._dotted(paths[0], [name])}.",
                    suggestion="Rename that one, or the alias by `text.replace`.",
                )
            return Target(name, Kind.MODULE_NAME, self._dotted(paths[0], [name]), paths)
        return self._member(origins, chain)

    def _module(self) -> tuple[tuple[str, ...], list[str]]:
        """The files of the symbol's module, and what follows it."""
        if ":" in self._symbol:
            path, _, rest = self._symbol.rpartition(":")
            if path not in self._documents.python:
                hint = nearest(path, self._documents.python)
                raise ContractError(
                    f"There is no Python file {path!r}.", suggestion=f"Did you mean {hint!r}?" if hint else ""
                )
            return (path,), rest.split(".")
        parts = self._symbol.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            found = self._names.files(".".join(parts[:cut]))
            if found:
                return found, parts[cut:]
        self._refuse_module()
        raise ContractError(
            f"There is no module for {self._symbol!r} in this repository.",
            suggestion=self._where_it_is(parts),
        )

    def _refuse_module(self) -> None:
        if self._names.files(self._symbol):
            raise ContractError(
                f"{self._symbol} is a module; `rename.symbol` renames what a module defines.",
                suggestion="Name something in it.",
            )

    def _where_it_is(self, parts: list[str]) -> str:
        """A hint: modules with a name like this one, or others that define the symbol's name."""
        known = sorted({self._names.name_of(path) for path in self._documents.python})
        hint = nearest(".".join(parts[:-1]) or self._symbol, known)
        if hint:
            return f"Did you mean {hint}.{parts[-1]}?"
        defining = [
            f"{self._names.name_of(document.path)}.{parts[-1]}"
            for document in self._documents.having(parts[-1])
            if (document.path, parts[-1]) in self._imports.origins(document.path, parts[-1])
        ]
        if defining:
            return f"Did you mean {' or '.join(defining[:3])}?"
        return "Write it as package.module.name."

    def _member(self, origins: list[tuple[str, str]], chain: list[str]) -> Target:
        keys: list[ClassKey] = []
        inherited = False
        for path, outer in origins:
            document = self._documents.get(path)
            assert document is not None, path
            for node in _nested_classes(document, [outer, *chain[1:-1]]):
                key = ClassKey(path, span_of(node.field("name") or node)[0])
                if member_places(self._imports.places(document, chain[-1]), node):
                    keys.append(key)
                else:
                    inherited = True
                    known = class_body_names(document, node)
        if keys:
            paths = tuple(dict.fromkeys(key.path for key in keys))
            dotted = self._dotted(paths[0], [origins[0][1], *chain[1:]])
            return Target(chain[-1], Kind.MEMBER, dotted, paths, tuple(keys))
        if inherited:
            hint = nearest(chain[-1], known)
            raise ContractError(
                f"{'.'.join(chain[:-1])} in {origins[0][0]} does not itself define {chain[-1]!r}.",
                suggestion=f"Did you mean {hint!r}? " * bool(hint)
                + "Where it is inherited, name the class that defines it.",
            )
        raise ContractError(
            f"{'.'.join(chain[:-1])} in {origins[0][0]} is no class.",
            suggestion="Names inside of functions cannot be renamed from outside.",
        )

    def _refuse(self, paths: tuple[str, ...], name: str) -> None:
        known: list[str] = []
        for path in paths:
            document = self._documents.get(path)
            if document is not None:
                known += module_names(document)
        self._refuse_module()
        if name in known:
            raise ContractError(f"{name!r} in {paths[0]} comes from outside of this repository.")
        hint = nearest(name, known)
        raise ContractError(
            f"{paths[0]} does not define {name!r}.",
            suggestion=f"Did you mean {hint!r}?" if hint else "Look at the module for its names.",
        )

    def _dotted(self, path: str, chain: list[str]) -> str:
        return ".".join([self._names.name_of(path), *chain])


def module_names(document: Document) -> list[str]:
    """The names that a module binds at its top, for a hint."""
    found: list[str] = []
    for kind, field in (
        ("function_definition", "name"),
        ("class_definition", "name"),
        ("assignment", "left"),
    ):
        for node in document.root.find_all(kind=kind):
            name = node.field(field)
            if name is not None and name.kind() == "identifier" and _is_at_top(node):
                found.append(name.text())
    for node in document.root.find_all(kind="import_from_statement"):
        found += [part.text().split()[-1] for part in node.field_children("name")]
    return list(dict.fromkeys(found))


def _is_at_top(node: SgNode) -> bool:
    return not any(
        one.kind() in ("function_definition", "class_definition", "lambda") for one in node.ancestors()
    )


def _nested_classes(document: Document, chain: list[str]) -> Iterator[SgNode]:
    """The class definitions by their names from the outside in."""
    for node in document.root.find_all(kind="class_definition"):
        owners = [
            one for one in node.ancestors() if one.kind() in ("class_definition", "function_definition")
        ]
        names = [one.field("name") for one in (*reversed(owners), node)]
        if [name.text() for name in names if name is not None] == chain and all(
            one.kind() == "class_definition" for one in owners
        ):
            yield node

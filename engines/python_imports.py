"""The import statements of a Python file, with what the rest must know to edit them."""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ast_grep_py import SgNode

from engines.python_names import Names, Scope
from engines.syntax import Span, span_of
from schemas.errors import ContractError

_STATEMENTS = ("import_statement", "import_from_statement", "future_import_statement")
_BLOCKS = frozenset({"block", "module"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """One name that a replacement needs. `module` has its dots (`.pkg`); `name` is empty for `import module`."""

    module: str
    name: str
    alias: str

    @property
    def bound(self) -> str:
        """The name that the file's code sees."""
        return self.alias or self.name or self.module.partition(".")[0]

    @property
    def item(self) -> str:
        """What stands after `import` in the statement."""
        base = self.name or self.module
        return f"{base} as {self.alias}" if self.alias else base

    @property
    def statement(self) -> str:
        """A statement for this name alone."""
        return f"from {self.module} import {self.item}" if self.name else f"import {self.item}"


@dataclass(frozen=True, slots=True)
class Imported:
    """One name of an import statement, and its span with its alias."""

    name: str
    alias: str
    span: Span


@dataclass(frozen=True, slots=True)
class Statement:
    """An import statement. `module` is empty for `import a, b`.

    `guards` are the compound statements around it inside its scope, from the inside out: `if` (with its condition),
    `try`, `with`, ...; `block` is the span of the block that it stands in.
    """

    node: SgNode
    span: Span
    module: str
    names: tuple[Imported, ...]
    scope: Scope
    guards: tuple[str, ...]
    block: Span
    is_star: bool

    @property
    def is_plain(self) -> bool:
        """True if it stands directly in its function or module."""
        return not self.guards

    @property
    def is_for_types(self) -> bool:
        """True if it only counts for type checkers."""
        return any(re.fullmatch(r"if (typing\.|t\.)?TYPE_CHECKING", guard) for guard in self.guards)

    @property
    def is_parenthesized(self) -> bool:
        """True for `from m import (…)`."""
        return any(child.kind() == "(" for child in self.node.children())

    def bound(self, one: Imported) -> str:
        """The name that the code sees for one of its names."""
        return one.alias or (one.name if self.module else one.name.partition(".")[0])

    def gives(self, wanted: Wanted) -> bool:
        """True if it brings in exactly what is wanted."""
        return any(self._is(one, wanted) for one in self.names)

    def _is(self, one: Imported, wanted: Wanted) -> bool:
        if wanted.name:
            return (self.module, one.name, one.alias) == (wanted.module, wanted.name, wanted.alias)
        if self.module or one.alias != wanted.alias:
            return False
        # `import a.b` binds `a` with all that `import a` gives.
        return one.name == wanted.module or (not wanted.alias and one.name.startswith(wanted.module + "."))


def wanted_names(lines: Sequence[str]) -> tuple[Wanted, ...]:
    """The names of `imports.add`. Raises ContractError for a line that is no import of names."""
    found: list[Wanted] = []
    for line in lines:
        try:
            body = ast.parse(line.strip()).body
        except SyntaxError as error:
            raise ContractError(
                f"imports.add: {line!r} is not a Python import.",
                suggestion="Write it as in a file: from datetime import timezone.",
            ) from error
        for statement in body:
            found += _wanted(statement, line)
        if not body:
            raise ContractError("imports.add: an empty line.")
    return tuple(dict.fromkeys(found))


def _wanted(statement: ast.stmt, line: str) -> list[Wanted]:
    if isinstance(statement, ast.Import):
        return [Wanted(one.name, "", one.asname or "") for one in statement.names]
    if not isinstance(statement, ast.ImportFrom):
        raise ContractError(f"imports.add: {line!r} is not an import.")
    if any(one.name == "*" for one in statement.names):
        raise ContractError(
            f"imports.add: {line!r} does not say which names it is about.", suggestion="Name them."
        )
    module = "." * statement.level + (statement.module or "")
    return [Wanted(module, one.name, one.asname or "") for one in statement.names]


def statements(root: SgNode, names: Names) -> list[Statement]:
    """Every import statement of the file, in order."""
    nodes = root.find_all(any=[{"kind": kind} for kind in _STATEMENTS])
    return [_statement(node, names) for node in nodes]


def _statement(node: SgNode, names: Names) -> Statement:
    module = ""
    if node.kind() == "future_import_statement":
        module = "__future__"
    elif node.kind() == "import_from_statement":
        source = node.field("module_name")
        module = "".join(source.text().split()) if source is not None else ""
    listed = [_imported(one) for one in node.field_children("name")]
    scope = names.chain_at(node)[0]
    parent = node.parent()
    return Statement(
        node,
        span_of(node),
        module,
        tuple(listed),
        scope,
        _guards(node),
        span_of(parent) if parent is not None else span_of(node),
        is_star=any(child.kind() == "wildcard_import" for child in node.children()),
    )


def _imported(node: SgNode) -> Imported:
    if node.kind() == "aliased_import":
        name, alias = node.field("name"), node.field("alias")
        return Imported(name.text() if name else "", alias.text() if alias else "", span_of(node))
    return Imported(node.text(), "", span_of(node))


def _guards(node: SgNode) -> tuple[str, ...]:
    found: list[str] = []
    for parent in node.ancestors():
        kind = parent.kind()
        if kind in ("function_definition", "class_definition", "module"):
            break
        if kind in _BLOCKS:
            continue
        condition = parent.field("condition") if kind == "if_statement" else None
        if kind == "if_statement" and found and found[-1] in ("else", "elif"):
            found[-1] += " if"
            continue
        found.append(
            f"if {condition.text()}"
            if condition is not None
            else kind.removesuffix("_statement").removesuffix("_clause")
        )
    return tuple(found)

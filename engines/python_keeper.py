"""Import handling for Python.

A name that the replacement needs is added where it is missing; where it is bound to something else, the match stays.
A name is dropped only if a removed piece of code used it and nothing else does, not even text that is read as code.
"""

import builtins
from collections.abc import Sequence
from functools import lru_cache

from ast_grep_py import SgNode

from engines.edits import Edit, edited, moved
from engines.imports import Kept
from engines.languages import language
from engines.pieces import RefusedError
from engines.python_drop import drop
from engines.python_imports import Imported, Statement, Wanted, statements
from engines.python_insert import beside, insert
from engines.python_merge import merge
from engines.python_names import ALL, ANNOTATION, Names, Occurrence, Scope
from engines.syntax import Span, parse, span_of

_PYTHON = language("python")
_BUILTINS = frozenset(dir(builtins))


class PythonImports:
    """The imports of one Python file during one rewrite."""

    def __init__(self, path: str, wanted: Sequence[Wanted]) -> None:
        self._is_init = path.rpartition("/")[2] in ("__init__.py", "__init__.pyi")
        self._wanted = wanted
        self._root: SgNode | None = None
        self._file = _File(parse("", _PYTHON))
        self._gone: dict[tuple[str, bool], None] = {}

    def admit(self, root: SgNode, match: SgNode) -> str | None:
        if root is not self._root:
            self._root, self._file = root, _File(root)
        for wanted in self._wanted:
            reason = self._file.conflict(wanted, match)
            if reason is not None:
                return reason
        for used in self._file.imported_in(match):
            self._gone[used] = None
        return None

    def settle(self, text: str, spans: Sequence[Span]) -> Kept:
        current = list(spans)
        for wanted in self._wanted:
            edits = _additions(text, current, wanted)
            text, current = edited(text, edits), moved(current, edits)
        remarks: list[str] = []
        pending = list(self._gone)
        while pending:
            text, more = self._without(text, *pending.pop(0), remarks)
            pending += more
        return Kept(text, tuple(remarks))

    def _without(
        self, text: str, name: str, in_module: bool, remarks: list[str]
    ) -> tuple[str, list[tuple[str, bool]]]:
        """The text without imports of the name that nobody uses; and names that this in turn leaves unused."""
        freed: list[tuple[str, bool]] = []
        while True:
            file = _file(text)
            unused = file.unused(name, in_module)
            if not unused:
                return text, freed
            statement, one = unused[0]
            stays = f"`{name}` is not used any more, but stays imported"
            if self._is_init and statement.scope == file.names.module:
                remarks.append(f"{stays}: others may import it from here.")
                return text, freed
            dropped = drop(text, statement, one)
            if dropped.is_wanted:
                remarks.append(f"{stays}: {dropped.reason}.")
                return text, freed
            if dropped.reason:
                raise RefusedError(f"the import of `{name}` would be left unused: {dropped.reason}")
            if dropped.comment:
                remarks.append(f"The import of `{name}` went with its comment {dropped.comment!r}.")
            if statement.is_for_types:
                freed += [("TYPE_CHECKING", True), ("typing", True)]
            text = edited(text, dropped.edits)


class _File:
    """One state of the file: its names and its import statements."""

    def __init__(self, root: SgNode) -> None:
        self.root = root
        self.names = Names(root)
        self.statements = statements(root, self.names)
        self.bound = frozenset(one.bound(each) for one in self.statements for each in one.names)

    def importing(self, name: str, scope: Scope) -> list[Statement]:
        """The statements of a scope that bind the name."""
        return [
            one
            for one in self.statements
            if one.scope == scope and any(one.bound(each) == name for each in one.names)
        ]

    def imported_in(self, match: SgNode) -> list[tuple[str, bool]]:
        """Names that stand in the match and that an import binds; and whether one of the module's does."""
        nodes = [match] if match.kind() == "identifier" else match.find_all(kind="identifier")
        names = [name for name in dict.fromkeys(node.text() for node in nodes) if name in self.bound]
        chain = self.names.chain_at(match)
        return [(name, self._is_global(name, chain)) for name in names]

    def conflict(self, wanted: Wanted, match: SgNode) -> str | None:
        """Why the wanted name would not mean what is wanted at the match, or None."""
        name, chain = wanted.bound, self.names.chain_at(match)
        for scope in chain[:-1]:
            others, imports = self.names.bindings(name, scope), self.importing(name, scope)
            if others:
                return f"`{name}` is something else there (bound in line {_line(others[0])})"
            strange = [one for one in imports if not one.gives(wanted)]
            if strange:
                return f"`{name}` is something else there (`{_shown(strange[0])}`)"
            if imports:
                early = any(one.span[1] <= span_of(match)[0] for one in imports)
                return None if early else f"`{name}` is imported later in the same function"
        return self._conflict_in_module(wanted)

    def _conflict_in_module(self, wanted: Wanted) -> str | None:
        name, module = wanted.bound, self.names.module
        others, imports = self.names.bindings(name, module), self.importing(name, module)
        same = [one for one in imports if one.gives(wanted)]
        strange = [one for one in imports if not one.gives(wanted)]
        if any("try" in one.guards for one in same) and _are_fallbacks(others, strange):
            return None
        if others:
            return f"`{name}` is something else in this file (bound in line {_line(others[0])})"
        if strange:
            return f"`{name}` is something else in this file (`{_shown(strange[0])}`)"
        if same:
            return (
                None if any(_is_sure(one) for one in same) else f"`{name}` is imported under a condition only"
            )
        elsewhere = [one for one in self.names.uses(name) if self._is_global(name, one.chain)]
        if elsewhere and name in _BUILTINS:
            return f"importing `{name}` would hide the builtin that line {_line(elsewhere[0])} uses"
        stars = [one for one in self.statements if one.is_star and one.scope == module]
        if elsewhere and stars:
            return f"`{name}` may come from `{_shown(stars[0])}`"
        return None

    def has(self, wanted: Wanted, chain: Sequence[Scope], before: int) -> bool:
        """True if the name is there for code at `before` already."""
        for scope in chain[:-1]:
            if any(one.gives(wanted) for one in self.importing(wanted.bound, scope)):
                return True
        in_module = [one for one in self.importing(wanted.bound, self.names.module) if one.gives(wanted)]
        in_function = len(chain) > 1
        return any(_is_sure(one) and (in_function or one.span[1] <= before) for one in in_module)

    def unused(self, name: str, in_module: bool) -> list[tuple[Statement, Imported]]:
        """Imports of the name, by the module itself or by its functions, that nothing uses."""
        found = [(one, each) for one in self.statements for each in one.names if one.bound(each) == name]
        scopes = frozenset(one.scope for one, _ in found)
        found = [(one, each) for one, each in found if (one.scope == self.names.module) == in_module]
        if not found:
            return []
        used = {self._owner(name, use.chain, scopes) for use in self.names.uses(name)}
        unused = [(one, each) for one, each in found if one.scope not in used and one.module != "__future__"]
        reader = self.names.named_in_text(name) if unused else ""
        if reader in (ALL, ANNOTATION):
            return []
        if reader:
            # Whoever lints this file does not read such text, and would call the import unused.
            raise RefusedError(f"only {reader} would use the import of `{name}`")
        return unused

    def _owner(self, name: str, chain: Sequence[Scope], importing: frozenset[Scope]) -> Scope:
        found = self.names.binds_in_function(name, tuple(chain), importing)
        return found or self.names.module

    def _is_global(self, name: str, chain: Sequence[Scope]) -> bool:
        scopes = frozenset(
            one.scope for one in self.statements for each in one.names if one.bound(each) == name
        )
        return self._owner(name, chain, scopes) == self.names.module


@lru_cache(maxsize=2)
def _file(text: str) -> _File:
    """One state is asked about many names."""
    return _File(parse(text, _PYTHON))


def _additions(text: str, spans: Sequence[Span], wanted: Wanted) -> list[Edit]:
    file = _file(text)
    root = file.root
    uses = [(span, file.names.chain_at(_node_at(root, span))) for span in spans]
    lacking = [(span, chain) for span, chain in uses if not file.has(wanted, chain, span[0])]
    if not lacking:
        return []
    first = min(span[0] for span, _ in lacking)
    home = _sibling(file, wanted, first)
    if home is None and wanted.name:
        local = [_local_sibling(file, wanted, span, chain) for span, chain in lacking]
        chosen = {one.span: one for one in local if one is not None}
        if all(one is not None for one in local):
            return [edit for one in chosen.values() for edit in merge(text, one, wanted)]
    if home is None:
        return [insert(text, root, file.statements, wanted, first)]
    if not wanted.name or _is_one_a_line(file):
        return [beside(text, home, wanted)]
    return merge(text, home, wanted)


def _sibling(file: _File, wanted: Wanted, first_use: int) -> Statement | None:
    """A plain import of the same module at the top level, above the first use."""
    if not wanted.name:
        return None
    found = [
        one
        for one in file.statements
        if one.module == wanted.module
        and one.is_plain
        and one.scope == file.names.module
        and not one.is_star
        and one.span[1] <= first_use
    ]
    return found[-1] if found else None


def _local_sibling(file: _File, wanted: Wanted, use: Span, chain: Sequence[Scope]) -> Statement | None:
    """An import of the same module in the use's own function, in a block around the use and above it."""
    for one in file.statements:
        is_around = one.block[0] <= use[0] and use[1] <= one.block[1] and one.span[1] <= use[0]
        if one.module == wanted.module and one.scope in chain[:-1] and is_around and not one.is_star:
            return one
    return None


def _is_one_a_line(file: _File) -> bool:
    """True if the file imports names one a line, and some module in several lines."""
    plain = [one for one in file.statements if one.module and one.is_plain and one.scope == file.names.module]
    modules = [one.module for one in plain]
    return all(len(one.names) == 1 for one in plain) and len(set(modules)) < len(modules)


def _is_sure(statement: Statement) -> bool:
    """True if the import runs whenever the module does."""
    return all(guard in ("try", "with") for guard in statement.guards)


def _are_fallbacks(others: Sequence[Occurrence], strange: Sequence[Statement]) -> bool:
    """True if whatever else binds the name does so where its import failed."""
    nodes = [one.node for one in others] + [one.node for one in strange]
    return all(any(parent.kind() == "except_clause" for parent in node.ancestors()) for node in nodes)


def _node_at(root: SgNode, span: Span) -> SgNode:
    """The smallest node that holds the span."""
    node = root
    while True:
        inner = [child for child in node.children() if _holds(span_of(child), span)]
        if not inner:
            return node
        node = inner[0]


def _holds(outer: Span, inner: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1] and outer[0] < outer[1]


def _line(one: Occurrence) -> int:
    return one.node.range().start.line + 1


def _shown(statement: Statement) -> str:
    return " ".join(statement.node.text().split())

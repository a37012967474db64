"""Import handling for Go, where an import too many is as fatal as one too few."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ast_grep_py import SgNode

from engines.edits import Edit, edited
from engines.imports import Kept
from engines.languages import language
from engines.layout import newline_at
from engines.lists import groups, line_end, line_start, without_lines
from engines.syntax import Span, inside_import, parse, span_of
from schemas.errors import ContractError

_GO = language("go")
_LINE = re.compile(r'(?:import\s+)?(?:([\w.]+)\s+)?["`]([^"`\s]+)["`]')
_VERSION = re.compile(r"v[0-9]+")
_FUNCTIONS = ("function_declaration", "method_declaration", "func_literal")
_BINDERS = (
    "short_var_declaration",
    "parameter_declaration",
    "variadic_parameter_declaration",
    "var_spec",
    "const_spec",
    "range_clause",
    "receive_statement",
    "type_switch_statement",
)


@dataclass(frozen=True, slots=True)
class Package:
    """One import: an alias (or nothing) and a path."""

    alias: str
    path: str

    @property
    def bound(self) -> str:
        """The name that code uses; the last part of the path is a convention that the compiler does not know."""
        if self.alias:
            return self.alias
        parts = self.path.split("/")
        last = parts[-2] if len(parts) > 1 and _VERSION.fullmatch(parts[-1]) else parts[-1]
        return re.sub(r"\.v[0-9]+$", "", last)

    @property
    def is_standard(self) -> bool:
        """True for the standard library: no host name in front."""
        return "." not in self.path.split("/", 1)[0]

    @property
    def spec(self) -> str:
        """As it stands in an import."""
        return f'{self.alias} "{self.path}"' if self.alias else f'"{self.path}"'


@dataclass(frozen=True, slots=True)
class _Spec:
    package: Package
    span: Span
    declaration: SgNode

    @property
    def is_listed(self) -> bool:
        return any(child.kind() == "import_spec_list" for child in self.declaration.children())


def wanted_packages(lines: Sequence[str]) -> tuple[Package, ...]:
    """The packages of `imports.add`. Raises ContractError for a line that is no import."""
    found: list[Package] = []
    for line in lines:
        match = _LINE.fullmatch(line.strip().rstrip(";"))
        if match is None:
            raise ContractError(
                f"imports.add: {line!r} is not a Go import.", suggestion='Write it so: import "io/fs".'
            )
        found.append(Package(match[1] or "", match[2]))
    return tuple(dict.fromkeys(found))


class GoImports:
    """The imports of one Go file during one rewrite."""

    def __init__(self, wanted: Sequence[Package]) -> None:
        self._wanted = wanted
        self._used: dict[str, None] = {}

    def admit(self, root: SgNode, match: SgNode) -> str | None:
        specs = _specs(root)
        for wanted in self._wanted:
            reason = _conflict(root, match, specs, wanted)
            if reason is not None:
                return reason
        bound = {spec.package.bound for spec in specs}
        self._used |= dict.fromkeys(word for word in re.findall(r"[^\W\d]\w*", match.text()) if word in bound)
        return None

    def settle(self, text: str, spans: Sequence[Span]) -> Kept:
        for wanted in self._wanted:
            root = parse(text, _GO)
            if wanted not in [spec.package for spec in _specs(root)]:
                text = edited(text, [_addition(text, root, _specs(root), wanted)])
        for name in self._used:
            text = _without(text, name)
        return Kept(text)


def _specs(root: SgNode) -> list[_Spec]:
    found: list[_Spec] = []
    for declaration in root.find_all(kind="import_declaration"):
        for spec in declaration.find_all(kind="import_spec"):
            alias, path = spec.field("name"), spec.field("path")
            package = Package(alias.text() if alias else "", path.text()[1:-1] if path else "")
            found.append(_Spec(package, span_of(spec), declaration))
    return found


def _conflict(root: SgNode, match: SgNode, specs: Sequence[_Spec], wanted: Package) -> str | None:
    name = wanted.bound
    for spec in specs:
        if spec.package.bound == name and spec.package.path != wanted.path:
            return f"`{name}` is something else in this file (import {spec.package.spec})"
        if spec.package.path == wanted.path and spec.package.alias != wanted.alias:
            return f"{spec.package.path} is imported as `{spec.package.bound}` in this file"
    around = [node for node in match.ancestors() if node.kind() in _FUNCTIONS]
    for node in root.find_all(kind="identifier", regex=f"^{re.escape(name)}$"):
        binder = _binder(node)
        if binder is None:
            continue
        line = node.range().start.line + 1
        owners = [one for one in node.ancestors() if one.kind() in _FUNCTIONS]
        if not owners or any(span_of(one) == span_of(owners[0]) for one in around):
            return f"`{name}` is something else there (bound in line {line})"
    return None


def _binder(node: SgNode) -> SgNode | None:
    """What declares this name, if anything does."""
    parent = node.parent()
    if parent is not None and parent.kind() in ("function_declaration", "type_spec", *_BINDERS):
        field = parent.field("name") or parent.field("left")
        names = parent.field_children("name") or ([field] if field else [])
        return parent if any(span_of(one) == span_of(node) for one in names) else None
    if parent is not None and parent.kind() == "expression_list":
        owner = parent.parent()
        left = owner.field("left") if owner is not None else None
        if (
            owner is not None
            and owner.kind() in _BINDERS
            and left is not None
            and span_of(left) == span_of(parent)
        ):
            return owner
    return None


def _addition(text: str, root: SgNode, specs: Sequence[_Spec], wanted: Package) -> Edit:
    listed = [spec for spec in specs if spec.is_listed]
    if not specs:
        clause = root.find(kind="package_clause")
        at = line_end(text, span_of(clause)[1] if clause else 0)
        newline = newline_at(text, 0)
        return Edit(at, at, f"{newline}import {wanted.spec}{newline}")
    if not listed:
        last = max(specs, key=lambda spec: spec.span)
        at = line_end(text, last.span[1])
        return Edit(at, at, f"import {wanted.spec}{newline_at(text, last.span[0])}")
    first = listed[0].declaration
    members = [spec for spec in listed if span_of(spec.declaration) == span_of(first)]
    return _into_list(text, members, wanted)


def _into_list(text: str, members: Sequence[_Spec], wanted: Package) -> Edit:
    newline = newline_at(text, members[0].span[0])
    indent = text[line_start(text, members[0].span[0]) : members[0].span[0]]
    indent = indent if not indent.strip() else "\t"
    line = f"{indent}{wanted.spec}{newline}"
    parted = groups(text, [spec.span for spec in members])
    for group in parted:
        if members[group[0]].package.is_standard != wanted.is_standard:
            continue
        before = [index for index in group if members[index].package.path < wanted.path]
        if before:
            at = line_end(text, members[before[-1]].span[1])
        else:
            at = line_start(text, members[group[0]].span[0])
        return Edit(at, at, line)
    if wanted.is_standard:
        at = line_start(text, members[0].span[0])
        return Edit(at, at, line + newline)
    at = line_end(text, members[-1].span[1])
    return Edit(at, at, newline + line)


def _without(text: str, name: str) -> str:
    """The text without imports of the name, if nothing uses it."""
    root = parse(text, _GO)
    words = root.find_all(regex=f"^{re.escape(name)}$")
    if any(
        node.is_leaf() and node.kind() != "field_identifier" and not inside_import(node) for node in words
    ):
        return text
    for spec in _specs(root):
        if spec.package.bound == name and spec.package.alias not in (".", "_"):
            inside = len(spec.declaration.find_all(kind="import_spec"))
            span = spec.span if spec.is_listed and inside > 1 else span_of(spec.declaration)
            return _without(edited(text, [without_lines(text, span)]), name)
    return text

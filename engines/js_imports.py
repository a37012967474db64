"""Import handling for JavaScript and TypeScript modules (`import … from`; `require` is left to the author)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ast_grep_py import SgNode

from engines.edits import Edit, edited
from engines.imports import Kept
from engines.languages import Language
from engines.layout import indent_at, newline_at
from engines.lists import line_end, line_start, without_lines
from engines.syntax import Span, first_fault, parse, span_of
from schemas.errors import ContractError

_NAMES = (
    "identifier",
    "type_identifier",
    "shorthand_property_identifier",
    "shorthand_property_identifier_pattern",
)
_DECLARING = (
    "variable_declarator",
    "function_declaration",
    "generator_function_declaration",
    "class_declaration",
    "abstract_class_declaration",
    "interface_declaration",
    "type_alias_declaration",
    "enum_declaration",
    "formal_parameters",
    "required_parameter",
    "optional_parameter",
    "rest_pattern",
    "object_pattern",
    "array_pattern",
    "catch_clause",
    "namespace_import",
)


@dataclass(frozen=True, slots=True)
class Binding:
    """One imported name: `name` is `default`, `*` or the exported one."""

    module: str
    name: str
    alias: str
    is_type: bool = False

    @property
    def bound(self) -> str:
        """The name that the file's code sees."""
        return self.alias or self.name

    @property
    def specifier(self) -> str:
        """As it stands between braces."""
        return f"{self.name} as {self.alias}" if self.alias and self.alias != self.name else self.name

    def statement(self, quote: str, end: str) -> str:
        """An import of this alone."""
        kind = "import type" if self.is_type else "import"
        what = {"default": self.alias, "*": f"* as {self.alias}"}.get(self.name, f"{{ {self.specifier} }}")
        return f"{kind} {what} from {quote}{self.module}{quote}{end}"


@dataclass(frozen=True, slots=True)
class _Found:
    binding: Binding
    node: SgNode
    statement: SgNode


def wanted_bindings(lines: Sequence[str], spoken: Language) -> tuple[Binding, ...]:
    """The names of `imports.add`. Raises ContractError for a line that is no import of names."""
    found: list[Binding] = []
    for line in lines:
        root = parse(line.strip(), spoken)
        bindings = [one.binding for one in _imports(root)]
        if first_fault(root, spoken) is not None or not bindings or len(root.children()) != 1:
            raise ContractError(
                f"imports.add: {line!r} is not an import of names.",
                suggestion="Write it so: import { join } from 'node:path'.",
            )
        found += bindings
    return tuple(dict.fromkeys(found))


class JsImports:
    """The imports of one JavaScript or TypeScript file during one rewrite."""

    def __init__(self, spoken: Language, wanted: Sequence[Binding]) -> None:
        self._language = spoken
        self._wanted = wanted
        self._used: dict[str, None] = {}

    def admit(self, root: SgNode, match: SgNode) -> str | None:
        imports = _imports(root)
        if self._wanted and not imports and root.find(pattern="require($A)") is not None:
            return "the file uses `require`, and an import statement may not work in it"
        for wanted in self._wanted:
            there = [one.binding for one in imports if one.binding.bound == wanted.bound]
            if any((one.module, one.name) != (wanted.module, wanted.name) for one in there):
                return f"`{wanted.bound}` is something else in this file (from {there[0].module!r})"
            if there:
                continue
            line = _declared_in(root, wanted.bound)
            if line:
                return f"`{wanted.bound}` is something else in this file (bound in line {line})"
        bound = {one.binding.bound for one in imports}
        self._used |= dict.fromkeys(word for word in re.findall(r"[\w$]+", match.text()) if word in bound)
        return None

    def settle(self, text: str, spans: Sequence[Span]) -> Kept:
        remarks: list[str] = []
        for wanted in self._wanted:
            root = parse(text, self._language)
            if not any(one.binding.bound == wanted.bound for one in _imports(root)):
                text = edited(text, _addition(text, root, wanted))
        for name in self._used:
            text = self._without(text, name, remarks)
        return Kept(text, tuple(remarks))

    def _without(self, text: str, name: str, remarks: list[str]) -> str:
        root = parse(text, self._language)
        if _is_used(root, name):
            return text
        found = [one for one in _imports(root) if one.binding.bound == name]
        if not found:
            return text
        if name == "React" and root.find(any=[{"kind": "jsx_element"}, {"kind": "jsx_self_closing_element"}]):
            remarks.append("`React` is not named any more, but stays imported: JSX may need it.")
            return text
        names = len(_imports_of(found[0].statement))
        if names == 1:
            start, end = span_of(found[0].statement)
            alone = not text[line_start(text, start) : start].strip()
            remarks.append(
                f"The import of {found[0].binding.module!r} is gone; if loading it had effects, put it back."
            )
            return edited(text, [without_lines(text, (start, end)) if alone else Edit(start, end, "")])
        edit = _specifier_out(text, found[0])
        if edit is None:
            remarks.append(f"`{name}` is not used any more, but stays imported.")
            return text
        return edited(text, [edit])


def _imports(root: SgNode) -> list[_Found]:
    statements = [root] if root.kind() == "import_statement" else root.find_all(kind="import_statement")
    return [one for statement in statements for one in _imports_of(statement)]


def _imports_of(statement: SgNode) -> list[_Found]:
    source = statement.field("source")
    module = source.text()[1:-1] if source is not None else ""
    whole_type = any(child.kind() == "type" for child in statement.children())
    found: list[_Found] = []
    for clause in statement.children():
        if clause.kind() != "import_clause":
            continue
        for child in clause.children():
            if child.kind() == "identifier":
                found.append(_Found(Binding(module, "default", child.text(), whole_type), child, statement))
            elif child.kind() == "namespace_import":
                alias = child.children()[-1].text()
                found.append(_Found(Binding(module, "*", alias, whole_type), child, statement))
            elif child.kind() == "named_imports":
                specifiers = child.find_all(kind="import_specifier")
                found += [_Found(_specifier(module, one, whole_type), one, statement) for one in specifiers]
    return found


def _specifier(module: str, node: SgNode, whole_type: bool) -> Binding:
    name, alias = node.field("name"), node.field("alias")
    is_type = whole_type or any(child.kind() == "type" for child in node.children())
    return Binding(module, name.text() if name else "", alias.text() if alias else "", is_type)


def _words(root: SgNode, name: str) -> list[SgNode]:
    return [
        node
        for node in root.find_all(regex=f"^{re.escape(name)}$")
        if node.is_leaf() and node.kind() in _NAMES
    ]


def _is_import_part(node: SgNode) -> bool:
    return any(one.kind() == "import_statement" for one in node.ancestors())


def _is_used(root: SgNode, name: str) -> bool:
    return any(not _is_import_part(node) for node in _words(root, name))


def _declared_in(root: SgNode, name: str) -> int:
    """The line that declares the name in this file, or 0."""
    for node in _words(root, name):
        parent = node.parent()
        if parent is None or _is_import_part(node):
            continue
        field = parent.field("name") or parent.field("pattern") or parent.field("parameter")
        is_name = field is None or span_of(field) == span_of(node)
        if (parent.kind() in _DECLARING and is_name) or _is_field(parent, "parameter", node):
            return node.range().start.line + 1
    return 0


def _is_field(parent: SgNode, field: str, node: SgNode) -> bool:
    found = parent.field(field)
    return found is not None and span_of(found) == span_of(node)


def _addition(text: str, root: SgNode, wanted: Binding) -> list[Edit]:
    statements = [one for one in root.children() if one.kind() == "import_statement"]
    for statement in statements:
        same = [one for one in _imports_of(statement) if one.node.kind() == "import_specifier"]
        if wanted.name in ("default", "*") or not same or same[0].binding.module != wanted.module:
            continue
        if all(one.binding.is_type for one in same) == wanted.is_type:
            return _into_braces(text, same, wanted)
    if statements:
        last = statements[-1]
        quote = '"' if any('"' in one.text() for one in statements) else "'"
        end = ";" if any(one.text().rstrip().endswith(";") for one in statements) else ""
        at = line_end(text, span_of(last)[1])
        newline = newline_at(text, span_of(last)[0])
        return [Edit(at, at, wanted.statement(quote, end) + newline)]
    at, newline = _top(text, root), newline_at(text, 0)
    quote = "'" if text.count("'") > text.count('"') else '"'
    return [Edit(at, at, wanted.statement(quote, ";" if ";" in text else "") + newline + newline)]


def _into_braces(text: str, same: Sequence[_Found], wanted: Binding) -> list[Edit]:
    spans = [span_of(one.node) for one in same]
    names = [one.binding.name.casefold() for one in same]
    index = sum(name <= wanted.name.casefold() for name in names) if names == sorted(names) else len(names)
    start, end = spans[min(index, len(spans) - 1)]
    own_line = not text[line_start(text, start) : start].strip()
    break_ = f"{newline_at(text, start)}{indent_at(text, start)}" if own_line else " "
    if index < len(spans):
        return [Edit(start, start, f"{wanted.specifier},{break_}")]
    return [Edit(end, end, f",{break_}{wanted.specifier}")]


def _specifier_out(text: str, one: _Found) -> Edit | None:
    start, end = span_of(one.node)
    if one.node.kind() != "import_specifier":
        comma = re.match(r"\s*,\s*", text[end:])
        return Edit(start, end + comma.end(), "") if comma else None
    braces = one.node.parent()
    if braces is not None and len(braces.find_all(kind="import_specifier")) == 1:
        return None
    first, last = line_start(text, start), line_end(text, end)
    if not text[first:start].strip() and re.fullmatch(r"\s*,?\s*(//.*)?\s*", text[end:last]):
        return Edit(first, last, "")
    after = re.match(r"\s*,[ \t]*", text[end:])
    if after:
        return Edit(start, end + after.end(), "")
    before = re.search(r",\s*$", text[:start])
    return Edit(start - len(before[0]), end, "") if before else None


def _top(text: str, root: SgNode) -> int:
    """Below a shebang, leading comments and directives such as "use strict"."""
    at = 0
    for child in root.children():
        is_directive = child.kind() == "expression_statement" and child.text().strip(";")[:1] in "'\""
        if child.kind() not in ("comment", "hash_bang_line") and not is_directive:
            break
        at = line_end(text, span_of(child)[1])
    return at

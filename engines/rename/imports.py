"""What a name in an import means: the module variable of another file, followed through re-exports."""

from collections.abc import Iterator

from ast_grep_py import SgNode

from engines.rename.documents import Document, Documents
from engines.rename.module_names import ModuleNames
from engines.rename.scopes import NamePlaces, Place, Role, places_of

_Key = tuple[str, str]


class Imports:
    """Follows imports between the files of a view; names are looked at one at a time and remembered."""

    def __init__(self, documents: Documents, names: ModuleNames) -> None:
        self._documents = documents
        self._names = names
        self._places: dict[_Key, NamePlaces] = {}

    def places(self, document: Document, name: str) -> NamePlaces:
        """All places of a name in a file."""
        key = (document.path, name)
        if key not in self._places:
            self._places[key] = places_of(document, name)
        return self._places[key]

    def sources(self, document: Document, place: Place) -> Iterator[tuple[str, str]]:
        """(path, name) that a binding by import takes its value from; nothing for what is not in the repository."""
        statement = _statement(place.node)
        if statement is None or statement.kind() != "import_from_statement":
            return
        taken = _taken_name(place.node)
        for path in self.module_of(document.path, statement):
            yield path, taken

    def origins(self, path: str, name: str) -> list[tuple[str, str]]:
        """(path, name) of the module variables that a module's name means in the end: where it is not an import."""
        found: list[tuple[str, str]] = []
        pending, seen = [(path, name)], set()
        while pending:
            key = pending.pop(0)
            document = self._documents.get(key[0])
            if key in seen or document is None:
                continue
            seen.add(key)
            variable = self.places(document, key[1]).module_variable
            bindings = variable.bindings if variable is not None else []
            own = [one for one in bindings if not list(self.sources(document, one)) and not _is_import(one)]
            if own:
                found.append(key)
            for one in bindings:
                pending += self.sources(document, one)
            if not bindings:
                pending += [(source, key[1]) for source in self.stars(document, key[1])]
        return found

    def stars(self, document: Document, name: str) -> list[str]:
        """The files whose names a file takes with `import *`, as far as they hand out this one."""
        if name.startswith("_") and not any("__all__" in one.text for one in [document]):
            return []
        found: list[str] = []
        for node in document.root.find_all(kind="wildcard_import"):
            statement = node.parent()
            if statement is not None:
                found += self.module_of(document.path, statement)
        return found

    def module_of(self, importer: str, statement: SgNode) -> tuple[str, ...]:
        """The files of the module that a from-import takes from."""
        module = statement.field("module_name")
        if module is None:
            return ()
        text = "".join(module.text().split())
        rest = text.lstrip(".")
        dots = len(text) - len(rest)
        return self._names.relative(importer, dots, rest) if dots else self._names.files(rest, importer)


class Meaning:
    """Which module variables of one name mean the target."""

    def __init__(self, documents: Documents, imports: Imports, name: str, seeds: frozenset[str]) -> None:
        """`seeds` are the paths whose module variable of the name is the target itself."""
        self._documents = documents
        self._imports = imports
        self._name = name
        self._known: dict[str, bool] = dict.fromkeys(seeds, True)

    def in_module(self, path: str) -> bool:
        """True if the module's variable of the name is the target, its own or imported."""
        if path not in self._known:
            self._known[path] = False  # for imports in a circle
            self._known[path] = self._look(path)
        return self._known[path]

    def of_binding(self, document: Document, place: Place) -> bool:
        """True if an import in any scope takes the target."""
        return any(
            name == self._name and self.in_module(path)
            for path, name in self._imports.sources(document, place)
        )

    def _look(self, path: str) -> bool:
        document = self._documents.get(path)
        if document is None:
            return False
        variable = self._imports.places(document, self._name).module_variable
        if variable is not None and variable.bindings:
            return any(self.of_binding(document, one) for one in variable.bindings)
        return any(self.in_module(one) for one in self._imports.stars(document, self._name))


def _statement(node: SgNode) -> SgNode | None:
    parent = node.parent()
    while parent is not None and parent.kind() in ("dotted_name", "aliased_import"):
        parent = parent.parent()
    return parent


def _is_import(place: Place) -> bool:
    statement = _statement(place.node)
    is_statement = statement is not None and statement.kind() in (
        "import_from_statement",
        "import_statement",
        "future_import_statement",
    )
    parent = place.node.parent()
    return is_statement and parent is not None and parent.kind() in ("dotted_name", "aliased_import")


def _taken_name(node: SgNode) -> str:
    """The name as the other module has it, for the name or the alias of a from-import."""
    parent = node.parent()
    if parent is not None and parent.kind() == "dotted_name":
        holder = parent.parent()
        parent = holder if holder is not None and holder.kind() == "aliased_import" else parent
    if parent is not None and parent.kind() == "aliased_import":
        return parent.children()[0].text()
    return node.text()


def imported_targets(places: NamePlaces, meaning: Meaning) -> list[Place]:
    """The names before `as` in from-imports that are the target."""
    return [one for one in places.with_role(Role.IMPORTED) if meaning.of_binding(places.document, one)]

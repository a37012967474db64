"""Which module the receiver of an attribute is: `a.b` in `a.b.NAME`, by imports alone, without types."""

from ast_grep_py import SgNode

from engines.rename.documents import Document, Documents
from engines.rename.imports import Imports
from engines.rename.module_names import ModuleNames
from engines.rename.scopes import MODULE, Place, seen_from

# `import pkg` in pkg/a.py, `from . import a` in pkg/__init__.py: circles are common, and chains this long are not.
_MOST_STEPS = 20


class Chains:
    """Follows dotted names to the files of modules."""

    def __init__(self, documents: Documents, names: ModuleNames, imports: Imports) -> None:
        self._documents = documents
        self._names = names
        self._imports = imports

    def module_of(self, document: Document, receiver: SgNode, steps: int = _MOST_STEPS) -> tuple[str, ...]:
        """The files of the module that the receiver is; empty if it is none of this repository, or not surely one."""
        if receiver.kind() == "attribute":
            outer, last = receiver.field("object"), receiver.field("attribute")
            if outer is None or last is None:
                return ()
            files = self.module_of(document, outer, steps)
            return self._inside(files, last.text(), steps) or self._imported_part(document, receiver)
        if receiver.kind() != "identifier":
            return ()
        variable = seen_from(document, receiver.text(), receiver)
        found = (
            [self._bound(document, one, steps) for one in variable.bindings] if variable is not None else []
        )
        known = [one for one in found if one]
        return known[0] if known and all(one == known[0] for one in known) else ()

    def _inside(self, files: tuple[str, ...], name: str, steps: int) -> tuple[str, ...]:
        """The module that a module's attribute is: what it imported under that name, or its submodule."""
        if not steps:
            return ()
        for path in files:
            document = self._documents.get(path)
            variable = self._imports.places(document, name).module_variable if document is not None else None
            for binding in variable.bindings if variable is not None else ():
                assert document is not None
                if (path, name) in self._imports.sources(document, binding):
                    break  # `from . import name` in the package itself: its submodule
                return self._bound(document, binding, steps - 1)
        return self._names.submodule(files, name)

    def _bound(self, document: Document, binding: Place, steps: int) -> tuple[str, ...]:
        """The module that an import binds a name to."""
        parent = binding.node.parent()
        holder = parent.parent() if parent is not None else None
        if parent is None or holder is None:
            return ()
        statement = next((one for one in binding.node.ancestors() if one.kind().startswith("import_")), None)
        if statement is None or parent.kind() not in ("dotted_name", "aliased_import"):
            return ()
        if statement.kind() == "import_statement":
            whole = parent.children()[0].text() if parent.kind() == "aliased_import" else binding.node.text()
            return self._names.files("".join(whole.split()), document.path)
        for path, name in self._imports.sources(document, binding):
            found = self._inside((path,), name, steps)
            if found:
                return found
        return ()

    def _imported_part(self, document: Document, receiver: SgNode) -> tuple[str, ...]:
        """`a.b` where `import a.b` stands at the top, and `a` is a folder without `__init__`."""
        dotted = "".join(receiver.text().split())
        root = dotted.partition(".")[0]
        variable = self._imports.places(document, root).module_variable
        for binding in variable.bindings if variable is not None and variable.kind == MODULE else ():
            parent = binding.node.parent()
            if (
                parent is not None
                and parent.kind() == "dotted_name"
                and f"{parent.text()}.".startswith(f"{dotted}.")
            ):
                return self._names.files(dotted, document.path)
        return ()

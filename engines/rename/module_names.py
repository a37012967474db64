"""Which file a dotted module name means, and the other way round.

A file is found from the folders that Python would look in: the top of the repository, `src`, `lib`, every folder
that holds a package, and the folder of the file that imports.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath


class ModuleNames:
    """The module names of a set of paths."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._folders = frozenset(
            str(parent) for path in self._paths for parent in PurePosixPath(path).parents
        )
        self.roots = self._find_roots()

    def root_of(self, path: str) -> str:
        """The folder that a file's module name starts from: the first one above it that is no package."""
        folder = PurePosixPath(path).parent
        while str(folder) != "." and self._is_package(str(folder)):
            folder = folder.parent
        return str(folder)

    def name_of(self, path: str) -> str:
        """The dotted name of a file's module; `src` and `lib` are no part of it."""
        pure = PurePosixPath(path)
        root = self.root_of(path)
        parts = pure.relative_to(root).with_suffix("").parts if root != "." else pure.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)

    def files(self, dotted: str, importer: str | None = None) -> tuple[str, ...]:
        """The files of a module (source and stub) in the first folder that has it; empty if there is none."""
        relative = dotted.replace(".", "/")
        for root in self._order(importer):
            found = self._files_at(relative if root == "." else f"{root}/{relative}")
            if found:
                return found
        return ()

    def is_folder(self, dotted: str, importer: str | None = None) -> bool:
        """True if a folder of that name may be a package without `__init__`."""
        relative = dotted.replace(".", "/")
        return any(
            (relative if root == "." else f"{root}/{relative}") in self._folders
            for root in self._order(importer)
        )

    def relative(self, importer: str, dots: int, rest: str) -> tuple[str, ...]:
        """The files that `from ..rest import` means in a file; `dots` counts the dots."""
        folder = PurePosixPath(importer).parent
        for _ in range(dots - 1):
            folder = folder.parent
        place = folder / rest.replace(".", "/") if rest else folder
        return self._files_at(str(place)) if rest else self._package_at(str(place))

    def submodule(self, package_files: Iterable[str], name: str) -> tuple[str, ...]:
        """The files of a submodule of a package, given the package's files."""
        for path in package_files:
            if PurePosixPath(path).stem == "__init__":
                found = self._files_at(str(PurePosixPath(path).parent / name))
                if found:
                    return found
        return ()

    def _order(self, importer: str | None) -> list[str]:
        own = [] if importer is None else [self.root_of(importer)]
        return list(dict.fromkeys([*own, *self.roots]))

    def _find_roots(self) -> tuple[str, ...]:
        packages = {self.root_of(path) for path in self._paths if PurePosixPath(path).stem == "__init__"}
        likely = [root for root in (".", "src", "lib") if root == "." or root in self._folders]
        # The folders of examples and tests come last, those deepest in the tree at the very end.
        rest = sorted(
            packages - set(likely),
            key=lambda root: (root.count("/"), root.encode("utf-8", "surrogateescape")),
        )
        return (*likely, *rest)

    def _files_at(self, place: str) -> tuple[str, ...]:
        found = self._package_at(place)
        return found or tuple(f"{place}{end}" for end in (".py", ".pyi") if f"{place}{end}" in self._paths)

    def _package_at(self, place: str) -> tuple[str, ...]:
        prefix = "" if place == "." else f"{place}/"
        return tuple(
            f"{prefix}__init__{end}" for end in (".py", ".pyi") if f"{prefix}__init__{end}" in self._paths
        )

    def _is_package(self, folder: str) -> bool:
        return bool(self._package_at(folder))

"""Which classes share a member: what overrides what, through every base that is in the repository."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ast_grep_py import SgNode, SgRoot

from engines.rename.definitions import Definitions, Spot
from engines.rename.documents import Documents, word_spans
from engines.rename.imports import Imports
from engines.rename.members import ClassKey, class_at, defining_classes, key_of
from engines.syntax import span_of

_NO_BASES = frozenset({"object", "Protocol", "Generic", "ABC", "NamedTuple", "TypedDict"})


@dataclass(frozen=True, slots=True)
class OutsideBase:
    """A base that is not in the repository: `defines` says whether it has the member, None that nobody can tell."""

    holder: ClassKey
    name: str
    defines: bool | None


@dataclass(slots=True)
class Family:
    """The classes that define the member together with the target's class, and what they inherit from elsewhere."""

    classes: frozenset[ClassKey]
    strangers: frozenset[ClassKey]
    outside: list[OutsideBase] = field(default_factory=list)


class Hierarchy:
    """The classes around one member name."""

    def __init__(self, documents: Documents, imports: Imports, definitions: Definitions, name: str) -> None:
        self._documents = documents
        self._imports = imports
        self._definitions = definitions
        self._name = name
        self._bases: dict[ClassKey, list[ClassKey]] = {}
        self._outside: dict[ClassKey, list[OutsideBase]] = {}

    def family(self, targets: Iterable[ClassKey]) -> Family:
        """The classes that define the member and are joined to the targets by inheritance."""
        definers = [
            key_of(document, node)
            for document in self._documents.having(self._name)
            for node in defining_classes(self._imports.places(document, self._name))
        ]
        above = {key: self.ancestors(key) for key in definers}
        joined = set(targets)
        while True:
            more = {
                key
                for key in definers
                if key not in joined
                and (above[key] & joined or any(key in above[one] for one in joined if one in above))
            }
            more |= self._joined_by_heirs(joined | more, definers, above)
            if not more - joined:
                break
            joined |= more
        outside = [
            base
            for key in sorted(joined)
            for holder in sorted({key, *above.get(key, ())})
            for base in self._outside.get(holder, ())
        ]
        unique = list(dict.fromkeys(outside))
        return Family(frozenset(joined), frozenset(definers) - joined, unique)

    def ancestors(self, key: ClassKey) -> frozenset[ClassKey]:
        """All classes of the repository that a class inherits from."""
        found: set[ClassKey] = set()
        pending = [key]
        while pending:
            for base in self._bases_of(pending.pop()):
                if base not in found:
                    found.add(base)
                    pending.append(base)
        return frozenset(found)

    def _joined_by_heirs(
        self, joined: set[ClassKey], definers: list[ClassKey], above: dict[ClassKey, frozenset[ClassKey]]
    ) -> set[ClassKey]:
        """Definers that meet the family in a common heir: there one overrides the other."""
        more: set[ClassKey] = set()
        for stranger in [key for key in definers if key not in joined]:
            for heir in self.heirs_of(stranger):
                if (self.ancestors(heir) | {heir}) & joined:
                    more.add(stranger)
                    break
        return more

    def heirs_of(self, key: ClassKey) -> list[ClassKey]:
        """Classes that name the class among several bases (where only one is named, there is nobody to meet)."""
        document = self._documents.get(key.path)
        node = class_at(document, key.position) if document is not None else None
        name = node.field("name") if node is not None else None
        if name is None:
            return []
        found: list[ClassKey] = []
        for holder in self._documents.having(name.text()):
            for word in holder.identifiers(name.text()):
                bases = next((one for one in word.ancestors() if one.kind() == "argument_list"), None)
                owner = bases.parent() if bases is not None else None
                if owner is None or owner.kind() != "class_definition" or len(_base_names(owner)) < 2:
                    continue
                heir = key_of(holder, owner)
                if key in self._bases_of(heir):
                    found.append(heir)
        return found

    def _bases_of(self, key: ClassKey) -> list[ClassKey]:
        if key not in self._bases:
            self._bases[key] = []
            self._look_up(key)
        return self._bases[key]

    def _look_up(self, key: ClassKey) -> None:
        document = self._documents.get(key.path)
        node = class_at(document, key.position) if document is not None else None
        if node is None:
            return
        named = _base_names(node)
        answers = self._definitions.typed([Spot(key.path, span_of(one)[0]) for one in named])
        for word, spots in zip(named, answers, strict=True):
            inside = [spot for spot in spots if not spot.is_outside and self._is_class(spot)]
            self._bases[key] += [ClassKey(spot.path, spot.position) for spot in inside]
            if not inside and word.text() not in _NO_BASES:
                self._outside.setdefault(key, []).append(OutsideBase(key, word.text(), self._defines(spots)))

    def _is_class(self, spot: Spot) -> bool:
        document = self._documents.get(spot.path)
        return document is not None and class_at(document, spot.position) is not None

    def _defines(self, spots: Iterable[Spot]) -> bool | None:
        """Whether a class outside, as far as its stub is known, or one that it inherits from, has the member."""
        known = None
        for spot in [one for one in spots if one.is_outside]:
            known = known or _stub_defines(self._definitions, spot, self._name, depth=8)
        return known


def _stub_defines(definitions: Definitions, spot: Spot, name: str, *, depth: int) -> bool:
    text = definitions.text(spot)
    if not depth:
        return False
    for node in SgRoot(text, "python").root().find_all(kind="class_definition"):
        own = node.field("name")
        if own is None or span_of(own)[0] != spot.position:
            continue
        body = node.field("body")
        if body is not None and any(_binds_member(one, name) for one in body.children()):
            return True
        bases = [one for one in _base_names(node) if one.text() not in _NO_BASES]
        answers = definitions.typed([Spot(spot.path, span_of(one)[0], is_outside=True) for one in bases])
        return any(
            _stub_defines(definitions, base, name, depth=depth - 1)
            for spots in answers
            for base in spots
            if base.is_outside
        )
    return False


def _binds_member(statement: SgNode, name: str) -> bool:
    return bool(word_spans(statement.text(), name)) and any(
        (own := node.field(field)) is not None and own.text() == name
        for kind, field in (("function_definition", "name"), ("assignment", "left"))
        for node in [statement, *statement.find_all(kind=kind)]
        if node.kind() == kind
    )


def _base_names(node: SgNode) -> list[SgNode]:
    """The identifier that names each base: the last one of a dotted name, without type arguments."""
    bases = node.field("superclasses")
    found: list[SgNode] = []
    for base in bases.children() if bases is not None else ():
        one: SgNode | None = base
        if one is not None and one.kind() == "subscript":
            one = one.field("value")
        if one is not None and one.kind() == "attribute":
            one = one.field("attribute")
        if one is not None and one.kind() == "identifier":
            found.append(one)
    return found

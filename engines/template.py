"""A pattern or a replacement as its author wrote it: text with holes (`$A`, `$$$A`), and its tokens.

The tokens are found by parsing the text with a plain name in place of each hole, in each place of the language where
such a piece of code may stand.
"""

import re
from dataclasses import dataclass

from ast_grep_py import SgNode

from engines.languages import Language
from engines.syntax import Leaf, Span, first_fault, leaves, parse, span_of

_HOLE = re.compile(r"(\$\$\$|\$\$|\$)([A-Z_][A-Z0-9_]*)?(?![A-Za-z0-9_])")
_WORD = "rolecallhole{}q"


@dataclass(frozen=True, slots=True)
class Hole:
    """`$A` (one piece of code) or `$$$A` (any number); `at` is its span in the template's text."""

    name: str
    is_many: bool
    at: Span


@dataclass(frozen=True, slots=True)
class Item:
    """A token of a template: literal text, or a hole. `at` is its span in the template's text."""

    text: str
    hole: Hole | None
    at: Span
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a template as code: the kind of the node that it is, in this place."""

    kind: str
    place: str
    items: tuple[Item, ...]
    root: SgNode
    node: SgNode


@dataclass(frozen=True, slots=True)
class Template:
    """The text, with nameless holes given names so that what they match can be found again."""

    text: str
    holes: tuple[Hole, ...]

    def names(self) -> dict[str, bool]:
        """The holes by name, and whether they hold any number."""
        return {hole.name: hole.is_many for hole in self.holes}


def template(text: str) -> Template:
    """Find the holes. Nameless ones (`$_`, `$$$`) get a name each, as every one of them matches by itself."""
    pieces: list[str] = []
    holes: list[Hole] = []
    last = length = 0
    for number, found in enumerate(_HOLE.finditer(text)):
        sigil, name = found[1], found[2] or ""
        if not name and sigil != "$$$":
            continue
        if not name or name.startswith("_"):
            name = f"ROLECALL{number}"
        before = text[last : found.start()]
        start = length + len(before)
        end = start + len(sigil) + len(name)
        pieces += [before, sigil, name]
        holes.append(Hole(name, sigil == "$$$", (start, end)))
        last, length = found.end(), end
    pieces.append(text[last:])
    return Template("".join(pieces), tuple(holes))


def readings(one: Template, language: Language) -> list[Reading]:
    """Every kind of code that the template can be, likeliest first; empty if it does not parse anywhere."""
    found: dict[str, Reading] = {}
    if not one.text.strip():
        return []
    for place in language.places:
        before, _, after = place.replace("{{", "{").replace("}}", "}").partition("{}")
        reading = _reading(one, language, place, before, after)
        if reading is not None and reading.kind not in found:
            found[reading.kind] = reading
    return list(found.values())


def context_of(reading: Reading, one: Template) -> str:
    """The template in the place of the reading, as ast-grep takes it."""
    return reading.place.format(one.text)


def _reading(one: Template, language: Language, place: str, before: str, after: str) -> Reading | None:
    text, moved = _with_words(one)
    root = parse(before + text + after, language)
    if first_fault(root, language) is not None:
        return None
    start, end = len(before), len(before) + len(text)
    node = _deepest(root, (start, end))
    if node is None or (before + after and not _is_first_of_its_kind(root, node)):
        return None
    items = tuple(_item(leaf, start, moved, one) for leaf in leaves(node) if not leaf.is_comment)
    return Reading(node.kind(), place, items, root, node)


def _with_words(one: Template) -> tuple[str, dict[str, Hole]]:
    """The text with a plain word for each hole, and the hole of each word."""
    pieces: list[str] = []
    words: dict[str, Hole] = {}
    last = 0
    numbers = {name: number for number, name in enumerate(one.names())}
    for hole in one.holes:
        # The same name gives the same word: `$A == $A` has to be one and the same thing twice.
        word = _WORD.format(numbers[hole.name])
        pieces += [one.text[last : hole.at[0]], word]
        words[word] = hole
        last = hole.at[1]
    return "".join([*pieces, one.text[last:]]), words


def _deepest(root: SgNode, span: Span) -> SgNode | None:
    """The deepest named node at the span."""
    node, found = root, None
    while True:
        if span_of(node) == span and node.is_named():
            found = node
        inner = [child for child in node.children() if _holds(span_of(child), span)]
        if len(inner) != 1:
            return found
        node = inner[0]


def _holds(outer: Span, inner: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1] and outer[0] < outer[1]


def _is_first_of_its_kind(root: SgNode, node: SgNode) -> bool:
    # ast-grep takes the first node of the wanted kind in the surroundings: it must be the pattern.
    first = root.find(kind=node.kind())
    return first is not None and span_of(first) == span_of(node)


def _item(leaf: Leaf, offset: int, words: dict[str, Hole], one: Template) -> Item:
    start = _back(leaf.start - offset, one)
    end = _back(leaf.end - offset, one)
    hole = words.get(leaf.text)
    return Item(
        leaf.text,
        None if hole is None else Hole(hole.name, hole.is_many, (start, end)),
        (start, end),
        leaf.is_named,
    )


def _back(position: int, one: Template) -> int:
    """A position in the text with words, as a position in the template's own text."""
    numbers = {name: number for number, name in enumerate(one.names())}
    shift = 0
    for hole in one.holes:
        word = len(_WORD.format(numbers[hole.name]))
        start = hole.at[0] + shift
        if position <= start:
            break
        if position < start + word:  # inside a word: as if at its end
            return hole.at[1]
        shift += word - (hole.at[1] - hole.at[0])
    return position - shift

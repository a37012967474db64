"""YAML as values that know their line, so that a refusal can say where.

YAML 1.2 (`yes` is a word, `010` is ten). Nothing is constructed by tags. Size, depth and the number of values after
following aliases are bounded, and a key that stands twice is refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from schemas.errors import RecipeError

# A recipe is written by hand; what is larger than this is not one, and is refused before it is parsed.
MAX_YAML_BYTES = 256 * 1024
# Values after following aliases: nested aliases can blow a few lines up to billions.
MAX_YAML_VALUES = 50_000
MAX_YAML_DEPTH = 40

_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(
    _TAG + kind for kind in ("str", "int", "float", "bool", "null", "timestamp", "seq", "map")
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """One word or number: its value, and the text as it was written."""

    value: str | int | float | bool | None
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: "tuple[Located, ...]"
    line: int


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping; `key_lines` says where each key stands."""

    fields: "Mapping[str, Located]"
    key_lines: Mapping[str, int]
    line: int


Located = Scalar | Items | Fields


def read_yaml(data: bytes, origin: str) -> Located:
    """The one document in the bytes. Raises RecipeError that starts with `origin:line:`."""
    if len(data) > MAX_YAML_BYTES:
        raise RecipeError(f"{origin}: larger than {MAX_YAML_BYTES // 1024} KiB; a recipe is not that large.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise RecipeError(f"{origin}:{line}: not UTF-8.", suggestion="Save the file as UTF-8.") from error
    try:
        node = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = error.problem or error.context or "cannot be read"
        raise RecipeError(f"{origin}:{line}: not valid YAML: {problem}.") from error
    except (YAMLError, ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0]
        raise RecipeError(f"{origin}: not valid YAML: {problem}.") from error
    if node is None:
        raise RecipeError(f"{origin}: empty.")
    return _Reader(origin).read(node, 0)


def plain(located: Located, schema: Mapping[str, Any] | None = None) -> Any:
    """The value without lines. Where the schema wants text, a number or `yes` is the text that was written."""
    schema = schema or {}
    match located:
        case Scalar():
            kinds = schema.get("type")
            if (
                kinds == "string"
                and not isinstance(located.value, str)
                and located.text.lower() not in ("~", "null")
            ):
                return located.text
            return located.value
        case Items():
            return [plain(item, schema.get("items")) for item in located.items]
        case Fields():
            properties = schema.get("properties", {})
            return {key: plain(value, properties.get(key)) for key, value in located.fields.items()}


def line_at(located: Located, path: Sequence[str | int]) -> int:
    """The line of what stands at the path, or of the nearest thing above it that exists."""
    line = located.line
    for part in path:
        if isinstance(located, Fields) and part in located.fields:
            line, located = located.key_lines[str(part)], located.fields[str(part)]
        elif isinstance(located, Items) and isinstance(part, int) and part < len(located.items):
            located = located.items[part]
            line = located.line
        else:
            break
    return line


class _Reader:
    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._count = 0

    def read(self, node: Node, depth: int) -> Located:
        line = node.start_mark.line + 1
        self._count += 1
        if self._count > MAX_YAML_VALUES:
            raise self._refused(line, f"more than {MAX_YAML_VALUES} values once its aliases are followed")
        if depth > MAX_YAML_DEPTH:
            raise self._refused(line, f"nested more than {MAX_YAML_DEPTH} deep")
        if str(node.tag) not in _PLAIN_TAGS:
            raise self._refused(line, f"the tag {str(node.tag).removeprefix(_TAG)!r} has no meaning here")
        match node:
            case ScalarNode():
                return self._scalar(node, line)
            case SequenceNode():
                return Items(tuple(self.read(child, depth + 1) for child in node.value), line)
            case MappingNode():
                return self._mapping(node, line, depth)
            case _:
                raise self._refused(line, f"a {node.tag} has no place here")

    def _scalar(self, node: ScalarNode, line: int) -> Scalar:
        tag, text = str(node.tag), node.value
        try:
            return Scalar(_VALUES.get(tag.removeprefix(_TAG), str)(text), text, line)
        except ValueError as error:
            raise self._refused(line, f"{text!r} is not a number") from error

    def _mapping(self, node: MappingNode, line: int, depth: int) -> Fields:
        fields: dict[str, Located] = {}
        lines: dict[str, int] = {}
        for key, key_line, value in self._pairs(node):
            if key in fields:
                raise self._refused(key_line, f"the key {key!r} stands twice (first in line {lines[key]})")
            lines[key] = key_line
            fields[key] = self.read(value, depth + 1)
        return Fields(fields, lines, line)

    def _pairs(self, node: MappingNode) -> Iterator[tuple[str, int, Node]]:
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, ScalarNode):
                raise self._refused(line, "a key must be a word")
            if str(key.tag) == f"{_TAG}merge":
                raise self._refused(line, "`<<` is not supported: write the keys out")
            yield str(key.value), line, value

    def _refused(self, line: int, problem: str) -> RecipeError:
        return RecipeError(f"{self._origin}:{line}: {problem}.")


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    sign, body = (-1, digits[1:]) if digits.startswith("-") else (1, digits.removeprefix("+"))
    base = {"0x": 16, "0o": 8, "0b": 2}.get(body[:2].lower())
    return sign * (int(body[2:], base) if base else int(body))


def _number(text: str) -> float | str:
    value = text.replace("_", "").lower()
    # Infinity and "not a number" mean nothing in a recipe, and JSON cannot carry them: they stay words.
    return text if value.lstrip("+-") in (".inf", ".nan") else float(value)


_VALUES: Mapping[str, Any] = {
    "int": _integer,
    "float": _number,
    "bool": lambda text: text.lower() == "true",
    "null": lambda _: None,
}

"""A rule of `rewrite.pattern`, checked and made ready: what to look for, and how each match becomes its replacement.

A match is turned into its replacement token by token: what both have in common stays as it stands in the file, so
comments and layout between the arguments survive.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from ast_grep_py import SgNode

from engines.languages import Language, language
from engines.syntax import Span, is_import_kind, leaves, span_of
from engines.template import Item, Reading, Template, context_of, readings, template
from schemas.errors import ContractError, at_key
from schemas.suggest import nearest

_HELP = "`rolecall contracts rewrite.pattern` shows how patterns are written."
_STRAY_DOLLAR = re.compile(r"\$+[A-Z_][A-Za-z0-9_]*")
_STATEMENT = re.compile(
    r"(statement|definition|declaration|clause|decorator|directive|item|block|pair|argument|parameter)$"
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[!-~]{2,}")


@dataclass(frozen=True, slots=True)
class Step:
    """Tokens `old` of the match become tokens `new` of the replacement (slices); both alike if `keep`."""

    keep: bool
    old: slice
    new: slice


@dataclass(frozen=True, slots=True)
class Variant:
    """One kind of code that the pattern can be. `steps` is None where a match is replaced as a whole."""

    reading: Reading
    query: Mapping[str, Any]
    steps: tuple[Step, ...] | None
    is_expression: bool


@dataclass(frozen=True, slots=True)
class Done:
    """The replacement as a pattern: inside what it matches, tokens `part` are a match of the rule that is done."""

    variant: Variant
    parts: tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A rule, ready to be applied."""

    language: Language
    match: Template
    replace: Template
    match_items: tuple[Item, ...]
    replace_items: tuple[Item, ...]
    variants: tuple[Variant, ...]
    done: tuple[Done, ...]
    is_import: bool
    literals: tuple[bytes, ...]
    words: tuple[re.Pattern[bytes], ...]

    def may_match(self, data: bytes) -> bool:
        """False if some word of the pattern stands nowhere in the bytes (of an encoding that has ASCII in it)."""
        return all(word in data for word in self.literals) and all(word.search(data) for word in self.words)


def compile_rule(input: Mapping[str, Any]) -> Pattern:
    """The rule in a `rewrite.pattern` input. Raises ContractError if it cannot work on any file."""
    return _compile(str(input["language"]), str(input["match"]), str(input["replace"]))


@lru_cache(maxsize=64)
def _compile(language_name: str, match_text: str, replace_text: str) -> Pattern:
    with at_key("language"):
        spoken = language(language_name)
    with at_key("match"):
        match = template(match_text.strip())
    with at_key("replace"):
        replace = template(_trimmed(replace_text))
    read = [one for one in readings(match, spoken) if not _is_whole_file(one)]
    if not read:
        raise _unreadable(match, spoken)
    with at_key("replace"):
        _check_holes(match, replace, spoken)
    replaced = readings(replace, spoken)
    items = replaced[0].items if replaced else ()
    variants = tuple(_variant(one, match, replace, items) for one in read)
    with at_key("match"):
        for variant in variants:
            _probe(variant, spoken)
    literals = _literals(read[0].items, spoken)
    return Pattern(
        spoken,
        match,
        replace,
        tuple(read[0].items),
        items,
        variants,
        _done(match, replace, variants, replaced),
        is_import=any(is_import_kind(one.kind) for one in read),
        literals=literals,
        words=tuple(
            re.compile(rb"(?<!\w)%s(?!\w)" % word) for word in literals if re.fullmatch(rb"\w+", word)
        ),
    )


def _trimmed(text: str) -> str:
    """Without line ends at both sides: a YAML block has one at its end that nobody means."""
    return text.strip("\r\n") if text.strip() else ""


def _check_holes(match: Template, replace: Template, spoken: Language) -> None:
    known = match.names()
    for name, is_many in replace.names().items():
        if name not in known:
            hint = nearest(name, known)
            raise ContractError(
                f"`replace` uses ${name}, which `match` does not have.",
                suggestion=f"Did you mean ${hint}?" if hint else _HELP,
            )
        if is_many != known[name]:
            right = "$$$" if known[name] else "$"
            raise ContractError(f"{name} is {right}{name} in `match`: write it so in `replace` too.")
    if not spoken.has_dollar_names:
        spare = replace.text
        for hole in reversed(replace.holes):
            spare = spare[: hole.at[0]] + " " * (hole.at[1] - hole.at[0]) + spare[hole.at[1] :]
        stray = _STRAY_DOLLAR.search(spare)
        if stray:
            raise ContractError(
                f"`replace` has {stray[0]!r}, which is no hole: names of holes are A-Z, 0-9 and _.",
                suggestion=_HELP,
            )


def _unreadable(match: Template, spoken: Language) -> ContractError:
    many = len(readings(match, spoken)) > 0
    why = "is more than one piece of code" if many else f"does not parse as {spoken.name}"
    return ContractError(
        f"The pattern {match.text!r} {why}, so it would match nothing.", suggestion=_HELP, place=("match",)
    )


def _variant(read: Reading, match: Template, replace: Template, items: tuple[Item, ...]) -> Variant:
    if read.place == "{}":
        pattern: Any = match.text
    else:
        pattern = {"context": context_of(read, match), "selector": read.kind}
    return Variant(
        read,
        {"pattern": pattern},
        _steps(read.items, items, match, replace) if items else None,
        is_expression=_STATEMENT.search(read.kind) is None and not is_import_kind(read.kind),
    )


def _probe(variant: Variant, spoken: Language) -> None:
    """Let ast-grep itself take the pattern, on a tree that is there."""
    try:
        variant.reading.root.find(**dict(variant.query))
    except Exception as error:
        said = [
            line.strip()
            for line in str(error).splitlines()
            if line.strip() and "backtrace" not in line.lower()
        ]
        raise ContractError(
            f"ast-grep refuses the pattern for {spoken.name}: {said[-1] if said else 'no reason given'}",
            suggestion=_HELP,
        ) from error


def _steps(
    old: Sequence[Item], new: Sequence[Item], match: Template, replace: Template
) -> tuple[Step, ...] | None:
    """How the match's tokens become the replacement's; None where layout is meaning, so that all must be written anew."""
    before, after = [_key(item) for item in old], [_key(item) for item in new]
    if any(_is_partial(item) for item in (*old, *new)):
        return None
    steps: list[Step] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        step = Step(tag == "equal", slice(i1, i2), slice(j1, j2))
        steps.append(step)
        if "\n" not in match.text and "\n" not in replace.text:
            continue
        if step.keep:
            pairs = zip(old[step.old], new[step.new], strict=True)
            if any(_indent(match.text, a.at[0]) != _indent(replace.text, b.at[0]) for a, b in pairs):
                return None
        elif "\n" in _around(match.text, old, step.old) or "\n" in _around(replace.text, new, step.new):
            return None
    return tuple(steps)


def _key(item: Item) -> str:
    return f"${item.hole.name}" if item.hole else item.text


def _is_partial(item: Item) -> bool:
    """True if a hole is only a part of a token, e.g. inside a word: the token cannot be compared."""
    return item.hole is None and "rolecallhole" in item.text


def _around(text: str, items: Sequence[Item], part: slice) -> str:
    """The text of a slice of tokens, with the layout at both its sides."""
    start = items[part.start - 1].at[1] if part.start > 0 else 0
    end = items[part.stop].at[0] if part.stop < len(items) else len(text)
    return text[start:end]


def _indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))] if "\n" in text[:position] else ""


def _done(
    match: Template, replace: Template, variants: Sequence[Variant], replaced: Sequence[Reading]
) -> tuple[Done, ...]:
    """Where the replacement holds a match of its own rule. Raises ContractError if done and not done look alike."""
    found: list[Done] = []
    for read in replaced:
        own = [
            span
            for variant in variants
            for span in (span_of(node) for node in _find(read.root, variant))
            if _inside(span, span_of(read.node))
        ]
        if not own:
            continue
        if _is_whole_file(read):
            raise _endless(match, "and what it writes is more than one piece of code")
        as_pattern = _variant(read, replace, replace, ())
        for variant in variants:
            if any(
                span_of(node) == span_of(variant.reading.node)
                for node in _find(variant.reading.root, as_pattern)
            ):
                raise _endless(match, "and every place that it matches already looks like what it writes")
        found.append(Done(as_pattern, tuple(_token_slice(read, span) for span in own)))
    return tuple(found)


def _endless(match: Template, why: str) -> ContractError:
    return ContractError(
        f"What the rule writes is matched by {match.text!r} again, {why}: it could never end.",
        suggestion="Make `match` say what is different before the change.",
    )


def _find(root: SgNode, variant: Variant) -> list[SgNode]:
    return root.find_all(**dict(variant.query))


def _inside(span: Span, outer: Span) -> bool:
    return outer[0] <= span[0] and span[1] <= outer[1]


def _token_slice(read: Reading, span: Span) -> slice:
    """Which tokens of the reading stand in the span of its tree."""
    spans = [(leaf.start, leaf.end) for leaf in leaves(read.node) if not leaf.is_comment]
    inside = [index for index, one in enumerate(spans) if _inside(one, span)]
    return slice(inside[0], inside[-1] + 1)


def _is_whole_file(read: Reading) -> bool:
    """True if only the whole file's node holds the template: it is several pieces of code."""
    return read.node.parent() is None


def _literals(items: Sequence[Item], spoken: Language) -> tuple[bytes, ...]:
    """Words that every match contains, longest (so likely rarest) first."""
    # PHP's keywords may be written in any case.
    sure = [item for item in items if item.hole is None and (item.is_named or spoken.name != "php")]
    words = {
        item.text
        for item in sure
        if len(item.text) > 1 and _WORD.fullmatch(item.text) and not _is_partial(item)
    }
    return tuple(word.encode() for word in sorted(words, key=lambda word: (-len(word), word)))

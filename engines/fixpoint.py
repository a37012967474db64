"""A pattern applied to one text until nothing is left to match.

Each pass rewrites the innermost matches, and what comes out is looked at before it is taken (see `settling`). A match
that cannot be rewritten without harm stays and becomes residue.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ast_grep_py import SgNode

from engines.matching import align, captures, tokens_of
from engines.pattern import Pattern, Variant
from engines.pieces import RefusedError, Rewrite
from engines.python_names import Role, role_of
from engines.removal import removals
from engines.settling import settle
from engines.syntax import Span, innermost, inside_import, parse, span_of
from engines.writing import rewrite_of

# Each pass peels one layer of nested matches; code nested deeper than this does not exist outside of tests.
MAX_PASSES = 200
# A text that outgrows this many times its size (and some) is a rule that feeds on its own output.
MAX_GROWTH = 8
_SLACK = 64 * 1024

Admit = Callable[[SgNode, SgNode], str | None]


class EndlessError(Exception):
    """The rule goes on matching what it writes."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A match that stays: its code, and why."""

    code: str
    reason: str


@dataclass(slots=True)
class Applied:
    """The text afterwards, the spans that are new in it, how many matches were rewritten, and what stayed where."""

    text: str
    spans: list[Span] = field(default_factory=list)
    sites: int = 0
    refused: dict[Span, Refused] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Match:
    """A piece of code that the pattern matches, and the kind of code that it is."""

    node: SgNode
    span: Span
    variant: Variant


def apply_pattern(pattern: Pattern, text: str, admit: Admit) -> Applied:
    """Rewrite every match; `admit(root, match)` may give a reason to leave one. Raises EndlessError."""
    applied = Applied(text)
    seen = {text}
    for _ in range(MAX_PASSES):
        root = parse(applied.text, pattern.language)
        open_ones = [
            one for one in find_matches(pattern, root, applied.text) if one.span not in applied.refused
        ]
        chosen = [open_ones[index] for index in innermost([one.span for one in open_ones])]
        if not chosen:
            return applied
        rewrites = _rewrites(pattern, chosen, root, applied, admit)
        settled = settle(applied.text, rewrites, pattern.language)
        for rewrite, reason in settled.refused:
            applied.refused[rewrite.span] = Refused(rewrite.old, reason)
        if not settled.moves:
            continue
        if len(settled.text) > MAX_GROWTH * len(text) + _SLACK or settled.text in seen:
            raise EndlessError
        seen.add(settled.text)
        _take(applied, settled.text, settled.moves)
    raise EndlessError


def find_matches(pattern: Pattern, root: SgNode, text: str) -> list[Match]:
    """Every match that is not done yet."""
    done = _done_spans(pattern, root, text)
    found: dict[Span, Match] = {}
    for variant in pattern.variants:
        for node in root.find_all(**dict(variant.query)):
            span = span_of(node)
            if span in found or span in done or not _is_place(pattern, node):
                continue
            found[span] = Match(node, span, variant)
    return list(found.values())


def _is_place(pattern: Pattern, node: SgNode) -> bool:
    """False for words that are no code of the pattern's kind: in imports, and (for a name) attributes and keywords."""
    if not pattern.is_import and inside_import(node):
        return False
    is_name = pattern.language.name == "python" and node.kind() == "identifier"
    return not is_name or role_of(node) is not Role.NOTHING


def _done_spans(pattern: Pattern, root: SgNode, text: str) -> set[Span]:
    """Matches that already stand in what the rule writes."""
    spans: set[Span] = set()
    for done in pattern.done:
        for node in root.find_all(**dict(done.variant.query)):
            caught = captures(node, pattern.replace)
            alignment = align(done.variant.reading.items, tokens_of(node, caught), caught, text)
            if alignment is not None:
                spans.update(_part_of(alignment.spans, part, span_of(node)) for part in done.parts)
    return spans


def _part_of(spans: Sequence[Span], part: slice, whole: Span) -> Span:
    """Where a slice of the tokens stands; all of them are the whole node, with what the pattern does not say."""
    start = whole[0] if part.start == 0 else spans[part.start][0]
    return start, whole[1] if part.stop == len(spans) else spans[part.stop - 1][1]


def _rewrites(
    pattern: Pattern, chosen: Sequence[Match], root: SgNode, applied: Applied, admit: Admit
) -> list[Rewrite]:
    admitted: list[Match] = []
    for one in chosen:
        reason = admit(root, one.node)
        if reason is None:
            admitted.append(one)
        else:
            applied.refused[one.span] = Refused(one.node.text(), reason)
    if not pattern.replace.text:
        return _removals(pattern, admitted, applied)
    rewrites: list[Rewrite] = []
    for one in admitted:
        try:
            rewrites.append(rewrite_of(one.node, one.variant, pattern, applied.text))
        except RefusedError as error:
            applied.refused[one.span] = Refused(one.node.text(), str(error))
    return rewrites


def _removals(pattern: Pattern, admitted: Sequence[Match], applied: Applied) -> list[Rewrite]:
    rewrites, refused = removals([one.node for one in admitted], applied.text, pattern.language)
    for node, reason in refused:
        applied.refused[span_of(node)] = Refused(node.text(), reason)
    return rewrites


def _take(applied: Applied, text: str, moves: Sequence[tuple[Span, Span]]) -> None:
    """Make the new text the current one: everything that is remembered by position moves along."""
    applied.refused = {
        _moved(s, moves): one for s, one in applied.refused.items() if not _is_touched(s, moves)
    }
    applied.spans = [_moved(span, moves) for span in applied.spans if not _is_touched(span, moves)]
    applied.spans += [new for _, new in moves]
    applied.sites += len(moves)
    applied.text = text


def _is_touched(span: Span, moves: Sequence[tuple[Span, Span]]) -> bool:
    """True for what lies in a rewritten match: what is left of it there will be found again."""
    return any(old[0] <= span[0] and span[1] <= old[1] for old, _ in moves)


def _moved(span: Span, moves: Sequence[tuple[Span, Span]]) -> Span:
    start, end = span
    shift_start = sum((new[1] - new[0]) - (old[1] - old[0]) for old, new in moves if old[1] <= start)
    shift_end = sum((new[1] - new[0]) - (old[1] - old[0]) for old, new in moves if old[1] <= end)
    return start + shift_start, end + shift_end

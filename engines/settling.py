"""Puts rewritten matches into the text and looks at what came out, before anyone takes it.

The text must still parse, and what a hole caught must still be one piece of code: `not $A` with `a or b` for `$A`
needs parentheses. A match for which no parentheses help stays as it was.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ast_grep_py import SgNode

from engines.languages import Language
from engines.pieces import Rewrite
from engines.syntax import Span, fault_spans, leaves, nodes_at, parse

_MEANING = "in parentheses or not, it would mean something else there"
_BROKEN = "the result would not parse"


@dataclass(frozen=True, slots=True)
class Settled:
    """The text with what could be rewritten; `moves` are the old and new spans, in order."""

    text: str
    moves: list[tuple[Span, Span]]
    refused: list[tuple[Rewrite, str]]


@dataclass(slots=True)
class _Attempt:
    rewrite: Rewrite
    wrapped: frozenset[int] = frozenset()
    outer: bool = False
    reason: str = ""
    at: Span = (0, 0)
    holes: dict[int, Span] = field(default_factory=dict)


def settle(text: str, rewrites: Iterable[Rewrite], spoken: Language) -> Settled:
    """Put the rewrites in, with parentheses where they are needed."""
    attempts = [_attempt(rewrite) for rewrite in sorted(rewrites, key=lambda one: one.span)]
    # Every round fixes or refuses at least one match, and nothing is touched more than three times.
    while True:
        alive = [one for one in attempts if not one.reason]
        new_text = _assembled(text, alive)
        if not _objects(new_text, alive, spoken):
            refused = [(one.rewrite, one.reason) for one in attempts if one.reason]
            return Settled(new_text, [(one.rewrite.span, one.at) for one in alive], refused)


def _attempt(rewrite: Rewrite) -> _Attempt:
    broken = [index for index, piece in enumerate(rewrite.pieces) if piece.is_broken]
    is_hopeless = any(rewrite.pieces[index].no_value for index in broken)
    return _Attempt(rewrite, frozenset(broken), reason=_MEANING if is_hopeless else "")


def _assembled(text: str, attempts: Sequence[_Attempt]) -> str:
    """The text with the attempts in it; notes in each where it stands."""
    parts: list[str] = []
    last = length = 0
    for one in attempts:
        start, end = one.rewrite.span
        new, holes = one.rewrite.render(one.wrapped, one.outer)
        parts += [text[last:start], new]
        length += start - last
        one.at = (length, length + len(new))
        one.holes = {index: (length + a, length + b) for index, (a, b) in holes.items()}
        length += len(new)
        last = end
    return "".join([*parts, text[last:]])


def _objects(new_text: str, attempts: Sequence[_Attempt], spoken: Language) -> bool:
    """Look at the new text, change or refuse what is wrong in it; False if all is well."""
    if not attempts:
        return False
    root = parse(new_text, spoken)
    faults = fault_spans(root, spoken)
    if faults:
        blamed = [one for one in attempts if any(_meets(one.at, fault) for fault in faults)]
        for one in blamed or attempts:
            if not _wrap_more(one, spoken):
                one.reason = _BROKEN
        return True
    wanted = [one.at for one in attempts] + [span for one in attempts for span in one.holes.values()]
    nodes = nodes_at(root, wanted)
    mended = [one for one in attempts if _mend(one, nodes, spoken)]
    return bool(mended)


def _mend(one: _Attempt, nodes: dict[Span, SgNode], spoken: Language) -> bool:
    """Change or refuse one attempt if it needs it; True if it did."""
    loose = [index for index, span in one.holes.items() if not _is_at_home(one, index, nodes.get(span))]
    if loose:
        fresh = frozenset(loose) - one.wrapped
        if not fresh or not spoken.parens or any(one.rewrite.pieces[index].no_value for index in fresh):
            one.reason = _MEANING
        else:
            one.wrapped |= fresh
        return True
    if spoken.name == "python" and any(_is_text_in_union(nodes[span]) for span in one.holes.values()):
        one.reason = "text in quotes cannot stand beside `|`"
        return True
    if one.rewrite.is_expression and one.at not in nodes:
        if one.outer or not spoken.parens:
            one.reason = _MEANING
        one.outer = True
        return True
    node = nodes.get(one.at)
    if node is not None and _has_new_comment(one, node, spoken):
        one.reason = _BROKEN  # code was swallowed by a comment
        return True
    return False


def _has_new_comment(one: _Attempt, node: SgNode, spoken: Language) -> bool:
    if spoken.name == "python" and "#" not in node.text():
        return False
    known = one.rewrite.old + "\n" + one.rewrite.template
    return any(leaf.text not in known for leaf in leaves(node) if leaf.is_comment)


def _is_at_home(one: _Attempt, index: int, node: SgNode | None) -> bool:
    """True if the piece is one piece of code there, and of a kind of code that may have it."""
    home = one.rewrite.pieces[index].home
    if node is None or not home or index in one.wrapped:
        return node is not None
    parent = node.parent()
    return parent is not None and parent.kind() == home


def _is_text_in_union(node: SgNode) -> bool:
    """True for `"Name" | None`: an annotation in quotes cannot be an operand when the program runs."""
    parent = node.parent()
    operator = parent.field("operator") if parent is not None and parent.kind() == "binary_operator" else None
    return node.kind() == "string" and operator is not None and operator.text() == "|"


def _wrap_more(one: _Attempt, spoken: Language) -> bool:
    """Try with everything in parentheses, once."""
    holes = frozenset(index for index in one.holes if not one.rewrite.pieces[index].no_value)
    if not spoken.parens or not one.rewrite.is_expression or not holes - one.wrapped:
        return False
    one.wrapped |= holes
    return True


def _meets(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]

"""The new text of a match, in pieces: what the rule writes, and what its holes caught."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from engines.layout import Depth
from engines.syntax import Leaf, Span

_PUNCTUATION = frozenset(",;")
_CLOSING = frozenset(")]}")
_LEADING_COMMA = re.compile(r"\s*,[ \t]*")
_TRAILING_COMMA = re.compile(r",\s*$")


class RefusedError(Exception):
    """This match stays as it is; the message is the reason for residue."""


class Part(Enum):
    """What a piece of new text is."""

    LITERAL = auto()
    ONE = auto()
    """What a single hole caught: it must stay one piece of code."""
    MANY = auto()
    """What `$$$A` caught."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the new text.

    `no_value` marks what cannot stand where a value is wanted (`*args`, `x=1`); `home` is the only kind of code of
    which the piece may be a part as it is; `is_broken` if its lines need brackets around them.
    """

    text: str
    part: Part = Part.LITERAL
    no_value: bool = False
    home: str = ""
    is_broken: bool = False


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A match and what stands there afterwards; `old` is the matched code, `template` what the rule writes."""

    span: Span
    pieces: tuple[Piece, ...]
    is_expression: bool
    old: str
    template: str = ""

    def render(self, wrapped: frozenset[int], outer: bool) -> tuple[str, dict[int, Span]]:
        """The new text with these pieces (and all of it) in parentheses, and where each whole piece is in it."""
        parts: list[str] = []
        where: dict[int, Span] = {}
        length = int(outer)
        for index, piece in enumerate(self.pieces):
            text = f"({piece.text})" if index in wrapped else piece.text
            if piece.part is Part.ONE:
                where[index] = (length, length + len(text))
            parts.append(text)
            length += len(text)
        text = "".join(parts)
        return (f"({text})" if outer else text), where


def refuse_extra(extra: Leaf) -> None:
    if extra.is_comment:
        raise RefusedError("a comment inside would be lost")
    if extra.text not in _PUNCTUATION:
        raise RefusedError(f"it has {extra.text!r}, which the pattern does not say")


def joined_literals(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbouring literal pieces as one."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and piece.part is Part.LITERAL and joined[-1].part is Part.LITERAL:
            joined[-1] = Piece(joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined


def commas_mended(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Without the comma that is one too many next to an empty `$$$A`, or behind one that ends with a comma."""
    for index, piece in enumerate(pieces):
        if piece.part is not Part.MANY:
            continue
        after = pieces[index + 1].text if index + 1 < len(pieces) else ""
        following = _LEADING_COMMA.match(after)
        if following and not piece.text:
            pieces[index + 1] = Piece(after[following.end() :])
        elif following and piece.text.rstrip().endswith(","):
            pieces[index + 1] = Piece(" " + after[following.end() :])
        elif not piece.text and index > 0 and after[:1] in _CLOSING:
            pieces[index - 1] = Piece(_TRAILING_COMMA.sub("", pieces[index - 1].text), pieces[index - 1].part)
    return tuple(pieces)


def on_one_line(pieces: Sequence[Piece], *, is_python: bool) -> tuple[Piece, ...]:
    """The pieces with the lines joined that lost their brackets; what a hole caught gets brackets of its own."""
    depth = Depth(is_python=is_python)
    made: list[Piece] = []
    for piece in pieces:
        if piece.part is Part.ONE:
            made.append(replace(piece, is_broken=depth.has_open_line_end(piece.text)))
            depth.pass_over(piece.text)
            continue
        text, is_blocked = depth.joined(piece.text)
        if is_blocked:
            raise RefusedError("a comment inside would be lost")
        made.append(replace(piece, text=text))
    made[-1] = replace(made[-1], text=made[-1].text.rstrip(" "))
    return tuple(made)

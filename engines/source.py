"""A file's bytes as text and back, so that every byte that is not edited comes out as it went in.

Encodings: a byte order mark, what a Python file declares in its first two lines (PEP 263), else UTF-8; what is not
UTF-8 may declare its encoding in the same way in any language. Line ends are characters like any other.
"""

import codecs
import re
from dataclasses import dataclass

# Git's own test for binary files: a NUL in the first 8000 bytes.
_BINARY_PROBE_BYTES = 8000
_DECLARED = re.compile(
    rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)|^[^\n]{0,20}-\*-.{0,40}coding:[ \t]*([-\w.]+)"
)
_BLANK_OR_COMMENT = re.compile(rb"^[ \t\f]*(?:[#\r\n]|$)")
_WIDE_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class UnreadableError(ValueError):
    """The bytes are not text in the encoding that they should have; the message is a reason for residue."""


@dataclass(frozen=True, slots=True)
class Source:
    """Text with what is needed to write it back."""

    text: str
    encoding: str
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """The bytes of a changed text. Raises UnreadableError if the encoding lacks a character of it."""
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            missing = text[error.start : error.start + 1]
            raise UnreadableError(
                f"the replacement has {missing!r}, which {self.encoding} cannot write"
            ) from error


def read_source(data: bytes, *, is_python: bool) -> Source:
    """The bytes as text. Raises UnreadableError if they are not text, or would not come back byte for byte."""
    if is_wide(data):
        raise UnreadableError("is UTF-16 or UTF-32")
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    declared = None if mark else declared_encoding(data)
    if is_python or declared is None:
        return _decoded(data, declared or "utf-8", mark)
    try:
        return _decoded(data, "utf-8", mark)
    except UnreadableError:
        return _decoded(data, declared, mark)


def declared_encoding(data: bytes) -> str | None:
    """The encoding that the first two lines declare, or None; the second counts only after a comment or blank."""
    first, _, rest = data.partition(b"\n")
    for line in (first, rest.partition(b"\n")[0]):
        found = _DECLARED.match(line[:300])
        if found:
            return _known_name((found[1] or found[2]).decode("ascii"))
        if not _BLANK_OR_COMMENT.match(line):
            return None
    return None


def is_binary(data: bytes) -> bool:
    """True for what git too calls binary."""
    return b"\0" in data[:_BINARY_PROBE_BYTES]


def is_wide(data: bytes) -> bool:
    """True if the bytes start with the mark of UTF-16 or UTF-32, in which no ASCII word can be found as bytes."""
    return data.startswith(_WIDE_MARKS)


def _decoded(data: bytes, encoding: str, mark: bytes) -> Source:
    try:
        source = Source(data[len(mark) :].decode(encoding), encoding, mark)
        faithful = source.encode(source.text) == data
    except LookupError as error:
        raise UnreadableError(f"declares the encoding {encoding!r}, which is unknown") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableError(f"is not {encoding} (line {line})") from error
    except ValueError as error:
        raise UnreadableError(f"does not come back byte for byte through {encoding}") from error
    if not faithful:
        raise UnreadableError(f"does not come back byte for byte through {encoding}")
    return source


def _known_name(name: str) -> str:
    try:
        info = codecs.lookup(name)
    except LookupError:
        return name
    if info.name == "utf-8-sig":  # the mark is kept apart, and there may be none
        return "utf-8"
    # `rot13`, `hex` and others are codecs too, but not encodings of text.
    return info.name if getattr(info, "_is_text_encoding", True) else f"{name} (no text encoding)"

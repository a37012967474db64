"""Which encoding a file is in, from its bytes: byte order mark, Python's coding line, else UTF-8."""

import codecs
import io
import tokenize
from functools import lru_cache

BOMS = {
    b"": "none",
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF32_LE: "UTF-32 LE",
    codecs.BOM_UTF32_BE: "UTF-32 BE",
    codecs.BOM_UTF16_LE: "UTF-16 LE",
    codecs.BOM_UTF16_BE: "UTF-16 BE",
}
_BY_BOM = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
PYTHON_ENDINGS = (".py", ".pyi", ".pyw")


def bom_of(data: bytes) -> bytes:
    """The byte order mark that the data starts with, or nothing. UTF-32's starts with UTF-16's, so it goes first."""
    return next((mark for mark in BOMS if mark and data.startswith(mark)), b"")


def declared_encoding(path: str, data: bytes) -> str:
    """The encoding the file says it is in; UTF-8 if it says nothing (or nonsense)."""
    if path.endswith(PYTHON_ENDINGS):
        try:
            return tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        except SyntaxError:
            return "utf-8"
    return _BY_BOM.get(bom_of(data), "utf-8")


def decodes(data: bytes, encoding: str) -> bool:
    """True if the data is valid in this encoding."""
    return decoded(data, encoding) is not None


def decoded(data: bytes, encoding: str) -> str | None:
    """The text, or None if the data is not valid in this encoding."""
    if not _is_known(encoding):
        return None
    try:
        return data.decode(encoding)
    except UnicodeError:
        return None


@lru_cache(maxsize=64)
def _is_known(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding)._is_text_encoding
    except LookupError:
        return False

"""Bytes to text and back."""

import pytest

from engines.source import UnreadableError, declared_encoding, is_binary, read_source


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"x", None),
        (b"# coding: latin-1\n", "iso8859-1"),
        (b"#!/bin/x\n# -*- coding: cp1252 -*-\n", "cp1252"),
        (b"\n# vim: set fileencoding=utf-8 :\n", "utf-8"),
        (b"x = 1\n# coding: latin-1\n", None),
        (b"\n\n# coding: latin-1\n", None),
        (b"/* -*- coding: latin-1 -*- */\n", "iso8859-1"),
        (b"# coding: utf-8-sig\n", "utf-8"),
        (b"# coding: klingon\n", "klingon"),
    ],
)
def test_a_declared_encoding_is_found(data: bytes, encoding: str | None) -> None:
    assert declared_encoding(data) == encoding


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xef\xbb\xbfx\r\n",
        "é\r\n\x0b\u2028".encode(),
        b"# coding: latin-1\n\xe9\x80",
        b"# coding: shift_jis\n" + "日本".encode("shift_jis"),
        b"# coding: utf-7\n+AGE-",
    ],
)
def test_text_comes_back_as_the_bytes_that_it_was_or_not_at_all(data: bytes) -> None:
    try:
        source = read_source(data, is_python=True)
    except UnreadableError:
        assert b"utf-7" in data  # the same text has several spellings there
    else:
        assert source.encode(source.text) == data


def test_only_python_believes_a_declaration_first() -> None:
    data = "# encoding: ascii\n# é\n".encode()

    assert read_source(data, is_python=False).encoding == "utf-8"
    with pytest.raises(UnreadableError, match=r"is not ascii \(line 2\)"):
        read_source(data, is_python=True)


def test_a_character_that_the_encoding_lacks_is_refused() -> None:
    source = read_source(b"# coding: latin-1\n", is_python=True)

    with pytest.raises(UnreadableError, match="the replacement has '→', which iso8859-1 cannot write"):
        source.encode("→")


def test_binary_is_what_git_calls_binary() -> None:
    assert is_binary(b"a\0")
    assert not is_binary(b"a" * 8000 + b"\0")

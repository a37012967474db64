"""Naming what changed in a file."""

from executor.key_changes import key_changes

BEFORE = b"""\
import os
from datetime import datetime

LIMIT = 3


class Client:
    size = 1

    def get(self):
        return datetime.utcnow()

    def put(self):
        return 1


def main():
    def inner():
        return os.sep
    return inner
"""


def test_a_changed_method_and_its_imports_are_named() -> None:
    after = BEFORE.replace(b"utcnow()", b"now(timezone.utc)").replace(
        b"import datetime", b"import datetime, timezone"
    )

    assert key_changes("a.py", BEFORE, after) == (
        "- from datetime import datetime",
        "+ from datetime import datetime, timezone",
        "Client.get()",
    )


def test_a_change_in_an_inner_function_is_not_one_of_the_outer() -> None:
    assert key_changes("a.py", BEFORE, BEFORE.replace(b"os.sep", b"os.pathsep")) == ("main.inner()",)


def test_class_bodies_and_the_module_level_are_told_apart() -> None:
    after = BEFORE.replace(b"size = 1", b"size = 2").replace(b"LIMIT = 3", b"LIMIT = 4")

    assert key_changes("a.py", BEFORE, after) == ("Client", "module level")


def test_a_renamed_function_is_new_and_gone() -> None:
    assert key_changes("a.py", BEFORE, BEFORE.replace(b"def put", b"def store")) == (
        "Client.store()",
        "Client.put() (gone)",
    )


def test_many_names_are_cut_short() -> None:
    before = b"".join(b"def f%d(): return 0\n" % n for n in range(30))

    names = key_changes("a.py", before, before.replace(b"return 0", b"return 1"))

    assert len(names) == 13
    assert names[-1] == "and 18 more"


def test_what_is_no_python_has_no_names() -> None:
    assert key_changes("a.js", b"a", b"b") == ()
    assert key_changes("a.py", None, b"def f(): ...\n") == ()


def test_text_in_a_function_that_begins_at_the_margin_does_not_end_it() -> None:
    before = b'def f():\n    sql = """\nSELECT 1\n"""\n    return sql\n'

    assert key_changes("a.py", before, before.replace(b"return sql", b"return sql + 1")) == ("f()",)


def test_a_decorator_belongs_to_what_it_decorates() -> None:
    before = b"class A:\n    @property\n    def x(self):\n        return 1\n"

    assert key_changes("a.py", before, before.replace(b"@property", b"@cached_property")) == ("A.x()",)


def test_an_import_over_several_lines_is_told_by_its_lines() -> None:
    before = b"from a import (\n    b,\n    c,\n)\n\nx = b, c\n"

    assert key_changes("a.py", before, before.replace(b"    c,\n", b"    c,\n    d,\n")) == ("+ d,",)

"""Import handling for Python: what is added where, what goes, and when a match is left instead."""

import pytest

from engines.languages import language
from engines.python_names import Names, Role
from engines.syntax import parse
from tests.unit.engine_cases import left, reasons, rewrite, rewritten

UTCNOW = ("datetime.utcnow()", "datetime.now(timezone.utc)", "from datetime import timezone")
USE = "now = datetime.utcnow()\n"
DONE = "now = datetime.now(timezone.utc)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # into the import that is there, in its own style
        ("from datetime import datetime\n", "from datetime import datetime, timezone\n"),
        ("from datetime import datetime, tzinfo\n", "from datetime import datetime, timezone, tzinfo\n"),
        ("from datetime import datetime, date\n", "from datetime import datetime, date, timezone\n"),
        ("from datetime import UTC, datetime\n", "from datetime import UTC, datetime, timezone\n"),
        ("from datetime import datetime  # noqa\n", "from datetime import datetime, timezone  # noqa\n"),
        ("from datetime import datetime; import os\n", "from datetime import datetime, timezone; import os\n"),
        ("from datetime import (datetime, date)\n", "from datetime import (datetime, date, timezone)\n"),
        ("from datetime import (\n    datetime,\n    tzinfo,\n)\n", "from datetime import (\n    datetime,\n    timezone,\n    tzinfo,\n)\n"),
        ("from datetime import (\n    date,\n    datetime,  # d\n)\n", "from datetime import (\n    date,\n    datetime,  # d\n    timezone,\n)\n"),
        ("from datetime import (\n    date,\n    datetime  # d\n)\n", "from datetime import (\n    date,\n    datetime,  # d\n    timezone\n)\n"),
        ("from datetime import (\n    date,\n    datetime)\n", "from datetime import (\n    date,\n    datetime,\n    timezone)\n"),
        ("from datetime import date, \\\n    datetime\n", "from datetime import date, \\\n    datetime, timezone\n"),
        ("from datetime import date\nfrom datetime import datetime\n", "from datetime import date\nfrom datetime import datetime\nfrom datetime import timezone\n"),
        # it is there already
        ("from datetime import datetime, timezone\n", "from datetime import datetime, timezone\n"),
        ("try:\n    from datetime import datetime, timezone\nexcept ImportError:\n    timezone = None\n", "try:\n    from datetime import datetime, timezone\nexcept ImportError:\n    timezone = None\n"),
        # a line of its own: groups, order, docstring, future, shebang, coding, licence
        ("", "from datetime import timezone\n\n"),
        ("\n", "\nfrom datetime import timezone\n\n"),
        ('"""Doc."""\n', '"""Doc."""\n\nfrom datetime import timezone\n\n'),
        ('"""Doc."""\n\n\n', '"""Doc."""\n\nfrom datetime import timezone\n\n\n'),
        ("#!/usr/bin/python\n# coding: utf-8\n", "#!/usr/bin/python\n# coding: utf-8\n\nfrom datetime import timezone\n\n"),
        ("# Licence\n\n", "# Licence\n\nfrom datetime import timezone\n\n"),
        ("# about now\n", "from datetime import timezone\n\n# about now\n"),
        ("from __future__ import annotations\n\n", "from __future__ import annotations\n\nfrom datetime import timezone\n\n"),
        ("import os\nimport sys\n\n", "import os\nimport sys\nfrom datetime import timezone\n\n"),
        ("import os\nfrom abc import ABC\nfrom re import sub\n\n", "import os\nfrom abc import ABC\nfrom datetime import timezone\nfrom re import sub\n\n"),
        ("import os\n\nimport requests\n\n", "import os\nfrom datetime import timezone\n\nimport requests\n\n"),
        ("import requests\n\nfrom . import x\n\n", "from datetime import timezone\n\nimport requests\n\nfrom . import x\n\n"),
        ("# ours\nimport requests\n\n", "from datetime import timezone\n\n# ours\nimport requests\n\n"),
        ("from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from datetime import datetime\n\n", "from datetime import timezone\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from datetime import datetime\n\n"),
        ("try:\n    from datetime import datetime\nexcept ImportError:\n    datetime = None\n\n", "from datetime import timezone\n\ntry:\n    from datetime import datetime\nexcept ImportError:\n    datetime = None\n\n"),
        ("x = 1\nimport os\n\n", "x = 1\nimport os\nfrom datetime import timezone\n\n"),
    ],
)  # fmt: skip
def test_the_import_that_is_needed_is_added(before: str, after: str) -> None:
    assert rewritten(before + USE, *UTCNOW) == after + DONE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # an import in the function stays in the function
        ("def f():\n    from datetime import datetime\n    return datetime.utcnow()\n", "def f():\n    from datetime import datetime, timezone\n    return datetime.now(timezone.utc)\n"),
        ("def f():\n    from datetime import datetime\n    if x:\n        return datetime.utcnow()\n", "def f():\n    from datetime import datetime, timezone\n    if x:\n        return datetime.now(timezone.utc)\n"),
        ("def f():\n    from datetime import timezone\n    return datetime.utcnow()\n", "def f():\n    from datetime import timezone\n    return datetime.now(timezone.utc)\n"),
        # one in the function is of no use to another function
        ("def f():\n    from datetime import datetime\n\n\ndef g():\n    return datetime.utcnow()\n", "from datetime import timezone\n\n\ndef f():\n    from datetime import datetime\n\n\ndef g():\n    return datetime.now(timezone.utc)\n"),
        # never after the first use
        ("now = datetime.utcnow()\nfrom datetime import datetime\n", "from datetime import timezone\n\nnow = datetime.now(timezone.utc)\nfrom datetime import datetime\n"),
        # another's own name is another's business
        ("from datetime import datetime\n\ndef f(timezone): ...\n\nnow = datetime.utcnow()\n", "from datetime import datetime, timezone\n\ndef f(timezone): ...\n\nnow = datetime.now(timezone.utc)\n"),
        ("from datetime import datetime\nf(timezone=1); x.timezone = 2\nnow = datetime.utcnow()\n", "from datetime import datetime, timezone\nf(timezone=1); x.timezone = 2\nnow = datetime.now(timezone.utc)\n"),
    ],
)  # fmt: skip
def test_the_import_comes_where_it_is_seen(before: str, after: str) -> None:
    assert rewritten(before, *UTCNOW) == after


def test_a_line_that_becomes_too_long_is_wrapped() -> None:
    before = "from package.module.with_a_name import first_long_name, second_long_name, third\n\nf(1)\n"

    assert rewritten(before, "f($A)", "zeta($A)", "from package.module.with_a_name import zeta") == (
        "from package.module.with_a_name import (\n    first_long_name,\n    second_long_name,\n    third,\n    zeta,\n)\n\nzeta(1)\n"
    )


def test_several_imports_are_added() -> None:
    assert rewritten(
        "import os\n\nf(1)\n", "f($A)", "m.g($A, join)", "import m", "from os.path import join"
    ) == ("import os\nfrom os.path import join\n\nimport m\n\nm.g(1, join)\n")


@pytest.mark.parametrize(
    ("before", "line", "reason"),
    [
        ("from django.utils import timezone\n\n" + USE, 3, "`timezone` is something else in this file (`from django.utils import timezone`)"),
        ("timezone = 3\n" + USE, 2, "`timezone` is something else in this file (bound in line 1)"),
        ("def f(timezone):\n    return datetime.utcnow()\n", 2, "`timezone` is something else there (bound in line 1)"),
        ("def f():\n    for timezone in x:\n        datetime.utcnow()\n", 3, "`timezone` is something else there (bound in line 2)"),
        ("class A:\n    timezone = 1\n    now = datetime.utcnow()\n", 3, "`timezone` is something else there (bound in line 2)"),
        ("def f():\n    from pytz import timezone\n    datetime.utcnow()\n", 3, "`timezone` is something else there (`from pytz import timezone`)"),
        ("def f():\n    datetime.utcnow()\n    from datetime import timezone\n", 2, "`timezone` is imported later in the same function"),
        ("if x:\n    from datetime import timezone\n" + USE, 3, "`timezone` is imported under a condition only"),
        ("from x import *\nprint(timezone)\n" + USE, 3, "`timezone` may come from `from x import *`"),
        ("def f():\n    global timezone\n    timezone = 1\n\n" + USE, 5, "`timezone` is something else in this file (bound in line 2)"),
    ],
)  # fmt: skip
def test_a_match_stays_where_the_name_means_something_else(before: str, line: int, reason: str) -> None:
    assert left(rewrite(before, *UTCNOW)) == [(line, reason)]


def test_importing_may_not_hide_a_builtin_that_is_used() -> None:
    result = rewrite("f(1)\nopen('x')\n", "f($A)", "open($A)", "from os import open")

    assert left(result) == [(1, "importing `open` would hide the builtin that line 2 uses")]


def test_only_the_matches_in_the_way_stay() -> None:
    result = rewrite(
        "from datetime import datetime\n\ndef f(timezone):\n    datetime.utcnow()\n\ndef g():\n    datetime.utcnow()\n",
        *UTCNOW,
    )

    assert result.data == (
        b"from datetime import datetime, timezone\n\ndef f(timezone):\n    datetime.utcnow()\n\n"
        b"def g():\n    datetime.now(timezone.utc)\n"
    )
    assert reasons(result.residue) == [(4, "`timezone` is something else there (bound in line 3)")]


WARN = ("warnings.warn($A)", "warn($A)")
CALL = "warnings.warn(1)\n"
CALLED = "warn(1)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import warnings\n", ""),
        ("import os\nimport warnings\nimport sys\n", "import os\nimport sys\n"),
        ("import os\n\nimport warnings\n\nimport sys\n", "import os\n\nimport sys\n"),
        ("import warnings\n\n\n", ""),
        ("import os, warnings, sys\n", "import os, sys\n"),
        ("import warnings, sys\n", "import sys\n"),
        ("import sys, warnings\n", "import sys\n"),
        ("import warnings; import sys\n", "import sys\n"),
        ("import sys; import warnings\n", "import sys\n"),
        # comments near it survive (B10)
        ("# Local imports\nimport warnings\nimport x\n", "# Local imports\nimport x\n"),
        ("from w import (\n    # about a\n    a,\n    warnings,\n    # about b\n    b,\n)\n", "from w import (\n    # about a\n    a,\n    # about b\n    b,\n)\n"),
        ("from w import (\n    a,\n    warnings\n)\n", "from w import (\n    a,\n)\n"),
        ("from w import (a,\n               warnings, b)\n", "from w import (a,\n               b)\n"),
        ("from w import (a,\n               warnings,\n               b)\n", "from w import (a,\n               b)\n"),
        ("from w import a, \\\n    warnings\n", "from w import a\n"),
        ("from w import a as warnings, b\n", "from w import b\n"),
        # a name of another scope is another name
        ("import warnings\ndef f(warnings): return warnings.x\n", "def f(warnings): return warnings.x\n"),
        ("import warnings\n[warnings for warnings in x]\n", "[warnings for warnings in x]\n"),
        ("import warnings\nx.warnings, f(warnings=1)\n", "x.warnings, f(warnings=1)\n"),
        ("'''About warnings.'''\nimport warnings\n", "'''About warnings.'''\n"),
        ("import warnings\nlog('warnings')\n", "log('warnings')\n"),
        ("from typing import TYPE_CHECKING, Any\nif TYPE_CHECKING:\n    import warnings\n", "from typing import Any\n"),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\n    import warnings\n", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\n"),
        # somebody uses it still
        ("import warnings\nwarnings.x\n", "import warnings\nwarnings.x\n"),
        ("import warnings\ndef f(): return warnings.x\n", "import warnings\ndef f(): return warnings.x\n"),
        ("import warnings\nclass A:\n    warnings = 1\n    def f(self): return warnings.x\n", "import warnings\nclass A:\n    warnings = 1\n    def f(self): return warnings.x\n"),
        ("import warnings\n__all__ = ['warnings']\n", "import warnings\n__all__ = ['warnings']\n"),
        ("import warnings\n__all__ += ['x', 'warnings']\n", "import warnings\n__all__ += ['x', 'warnings']\n"),
        ("import warnings\nx: 'warnings.W' = 1\n", "import warnings\nx: 'warnings.W' = 1\n"),
        ("import warnings\nx = cast('warnings.W', y)\n", "import warnings\nx = cast('warnings.W', y)\n"),
        ("import warnings\nx = Optional['warnings.W']\n", "import warnings\nx = Optional['warnings.W']\n"),
        ("import warnings\nf'{warnings}'\n", "import warnings\nf'{warnings}'\n"),
    ],
)  # fmt: skip
def test_an_import_goes_when_nothing_uses_it_any_more(before: str, after: str) -> None:
    assert rewritten(before + CALL, *WARN) == after + CALLED


@pytest.mark.parametrize(
    ("before", "path", "remark"),
    [
        ("import warnings  # noqa\n", "a.py", "its line has a `noqa`."),
        ("import warnings  # noqa: E402,F401\n", "a.py", "its line has a `noqa`."),
        ("import warnings as warnings\n", "a.py", "`X as X` exports it."),
        ("import warnings\n", "pkg/__init__.py", "others may import it from here."),
    ],
)
def test_an_import_that_is_there_on_purpose_stays_and_is_told(before: str, path: str, remark: str) -> None:
    result = rewrite(before + CALL, *WARN, path=path)

    assert result.data == (before + CALLED).encode()
    assert [one.text for one in result.risks] == [
        f"`warnings` is not used any more, but stays imported: {remark}"
    ]


@pytest.mark.parametrize(
    ("before", "line", "reason"),
    [
        ("try:\n    import warnings\nexcept ImportError:\n    warnings = None\n", 5, "the import of `warnings` would be left unused: it stands inside `try`"),
        ("def f():\n    '''\n    >>> warnings.warn(1)\n    '''\nimport warnings\n", 6, "only a doctest would use the import of `warnings`"),
        ("import warnings\nx = []  # type: List[warnings.W]\n", 3, "only a type comment would use the import of `warnings`"),
    ],
)  # fmt: skip
def test_a_file_is_left_where_its_import_could_neither_go_nor_stay(
    before: str, line: int, reason: str
) -> None:
    assert left(rewrite(before + CALL, *WARN)) == [(line, f"file left alone: {reason}")]


def test_a_comment_that_went_with_its_import_is_told() -> None:
    result = rewrite("import warnings  # for f\n" + CALL, *WARN)

    assert [one.text for one in result.risks] == ["The import of `warnings` went with its comment '# for f'."]


def test_an_import_that_was_unused_before_is_not_ours_to_remove() -> None:
    assert rewritten("import os\nimport warnings\n" + CALL, *WARN) == "import os\n" + CALLED
    assert rewritten("import warnings\ndef f():\n    import warnings\n    warnings.warn(1)\n", *WARN) == (
        "import warnings\ndef f():\n    warn(1)\n"
    )


def test_a_function_whose_only_other_line_was_the_import_stays_a_function() -> None:
    assert rewritten("def f():\n    import dbg\n    dbg(1)\n", "dbg($A)", "") == "def f():\n    pass\n"


@pytest.mark.parametrize(
    ("code", "roles"),
    [
        ("N = 1", [Role.BIND]),
        ("a, (N, *b) = x", [Role.BIND]),
        ("N.x = N[0]", [Role.USE, Role.USE]),
        ("x.N = f(N=1)", [Role.NOTHING, Role.NOTHING]),
        ("def f(N, *a: N, b=N) -> N: pass", [Role.BIND, Role.USE, Role.USE, Role.USE]),
        ("lambda N: N", [Role.BIND, Role.USE]),
        ("class N(N): pass", [Role.BIND, Role.USE]),
        ("for N in N: pass", [Role.BIND, Role.USE]),
        ("with a as (N, b): pass", [Role.BIND]),
        ("try: pass\nexcept N as N: pass", [Role.USE, Role.BIND]),
        ("from N import N as N", [Role.IMPORT, Role.IMPORT, Role.IMPORT]),
        ("[(N := z) for z in q]", [Role.BIND]),
        ("N += 1", [Role.BOTH]),
        ("del N", [Role.BOTH]),
        ("match x:\n  case N(N=N): pass\n  case [*N]: pass\n  case N.y as N: pass", [Role.USE, Role.NOTHING, Role.BIND, Role.BIND, Role.USE, Role.BIND]),
        ("type N = list[N]", [Role.BIND, Role.USE]),
        ("print N", [Role.USE]),
    ],
)  # fmt: skip
def test_what_a_name_does_is_known(code: str, roles: list[Role]) -> None:
    names = Names(parse(code, language("python")))

    assert [one.role for one in names.occurrences("N")] == roles

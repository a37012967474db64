"""`lint.fix`: ruff's fixes, and everything that ruff does not fix."""

from typing import Any

import pytest

from engines.gaps import closed_gaps
from engines.lint_fix import LintFix
from engines.ruff import RUFF_VERSION
from schemas.errors import ContractError
from schemas.scope import Reach, Shard
from tests.unit.engine_cases import after, as_bytes, run
from workspace.view import DictView

LINT = LintFix()
LIST = "from typing import List\nx: List[int]\n"
FIXED = b"from typing import List\nx: list[int]\n"


def residue(files: dict[str, str | bytes], **given: Any) -> list[tuple[str, int, str]]:
    return [
        (one.path, one.line, one.reason) for one in run(LINT, {"rules": ["UP006"]} | given, files).residue
    ]


def test_only_the_named_rules_are_applied() -> None:
    result = run(
        LINT,
        {"rules": ["UP006", "UP045"], "target": "py310"},
        {"a.py": LIST + "y: Optional[int]\nimport os\n"},
    )

    assert after({}, result) == {"a.py": FIXED + b"y: Optional[int]\nimport os\n"}
    assert result.output() == {"sites": 1, "files_seen": 1, "by_rule": {"UP006": 1}}
    assert [(one.path, one.hunk, one.engine) for one in result.provenance] == [
        ("a.py", 1, f"ruff {RUFF_VERSION}+r2")
    ]


@pytest.mark.parametrize(
    "before",
    [
        b"\xef\xbb\xbffrom typing import List\r\nx: List[int]\r\n",
        b"from typing import List\r\nx: List[int]\ny: List[int]\r\nz = 1",
        b"from typing import List\n\n\n\n\nx   =   'a'\nx: List[int]",
    ],
)
def test_bytes_outside_of_the_fixes_stay(before: bytes) -> None:
    result = run(LINT, {"rules": ["UP006"]}, {"a.py": before})

    assert after({}, result) == {"a.py": before.replace(b"List[", b"list[")}


def test_every_path_is_looked_at_even_where_ruff_would_not() -> None:
    files = dict.fromkeys(
        ("build/a.py", "venv/b.py", "-c.py", "d e.py", "node_modules/f.pyi", "é.py", "g\nh.py"), LIST
    )

    result = run(LINT, {"rules": ["UP006"]}, files)

    assert after({}, result) == dict.fromkeys(files, FIXED)


def test_what_ruff_cannot_fix_is_residue() -> None:
    assert residue({"a.py": "import os\nassert (1,)\nx = None\nx == None\n"}, rules=["F", "E711"]) == [
        ("a.py", 1, "F631 not fixed: Assert test is a non-empty tuple, which is always `True`"),
        (
            "a.py",
            3,
            "E711 not fixed: Comparison to `None` should be `cond is None` (ruff has an unsafe fix for it: `unsafe: true`)",
        ),
    ]


def test_unsafe_fixes_are_applied_only_when_asked_for() -> None:
    before = {"a.py": "x = None\nx == None\n"}

    assert after({}, run(LINT, {"rules": ["E711"]}, before)) == {}
    assert after({}, run(LINT, {"rules": ["E711"], "unsafe": True}, before)) == {
        "a.py": b"x = None\nx is None\n"
    }


def test_files_that_ruff_only_warns_of_are_residue() -> None:
    files: dict[str, str | bytes] = {
        "broken.py": "def f(:\n",
        "latin.py": b"# coding: latin-1\nx = '\xe9'\n",
        "odd.py": b"x = '\xe9'\n",
        "lies.py": "# coding: latin-1\nx = 'é'\n",
        "caf\udce9.py": LIST,
    }

    assert residue(files) == [
        ("broken.py", 1, "does not parse: Expected a parameter or the end of the parameter list"),
        ("caf\udce9.py", 0, "its name is not UTF-8, so ruff cannot report about it"),
        ("latin.py", 0, "is iso8859-1, and ruff reads UTF-8 only"),
        ("lies.py", 0, "declares iso8859-1 but ruff would read it as UTF-8"),
        ("odd.py", 0, "is not UTF-8, and ruff reads nothing else"),
    ]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("UP9999", "knows no rule 'UP9999'. Did you mean 'UP0"),
        ("ZZZ", "knows no rule 'ZZZ'"),
        ("E501", "ruff has no fix for 'E501', it only reports it"),
        ("E225", "'E225' is a preview rule"),
        ("UP038", "no longer has the rule 'UP038'"),
    ],
)
def test_a_rule_that_ruff_cannot_apply_is_refused(rule: str, said: str) -> None:
    with pytest.raises(ContractError, match=said):
        LINT.check({"rules": [rule]})


def test_the_repository_s_settings_count_only_when_asked_for() -> None:
    files = {
        "pyproject.toml": "[tool.ruff]\nexclude = ['x']\n[tool.ruff.lint]\nextend-select = ['I']\n",
        "x/a.py": LIST,
        "b.py": "import z\nimport a\n" + LIST,
    }
    imports = b"import z\nimport a\n"

    assert after({}, run(LINT, {"rules": ["UP006"]}, files)) == {"x/a.py": FIXED, "b.py": imports + FIXED}
    assert after({}, run(LINT, {"rules": ["UP006"], "config": "repository"}, files)) == {
        "b.py": imports + FIXED
    }


def test_the_repository_s_python_is_respected() -> None:
    files = {
        "pyproject.toml": "[project]\nname = 'x'\nversion = '1'\nrequires-python = '>=3.8'\n",
        "a.py": LIST,
    }

    assert after({}, run(LINT, {"rules": ["UP006"], "config": "repository"}, files)) == {}


def test_settings_that_ruff_refuses_are_the_author_s_to_mend() -> None:
    files = {"pyproject.toml": "[tool.ruff]\nrequired-version = '>=99'\n", "a.py": LIST}

    with pytest.raises(
        ContractError, match=r"With the repository's settings: ruff ended with 2.*`config: isolated`"
    ):
        run(LINT, {"rules": ["UP006"], "config": "repository"}, files)


def test_only_touched_files_are_looked_at_when_asked_for() -> None:
    files = as_bytes({"a.py": LIST, "b.py": LIST, "new.py": LIST})
    view = DictView(files, earlier={"a.py": b"before", "b.py": files["b.py"]})
    given = {"rules": ["UP006"], "touched_only": True, "touched": "0" * 40}

    result = LINT.apply(given, view)

    assert (sorted(result.changes), result.files_seen) == (["a.py", "new.py"], 2)


def test_the_answer_does_not_depend_on_how_the_work_is_cut() -> None:
    files = as_bytes(
        {"app/a.py": "import os\nimport mine\nimport requests\n", "src/mine/__init__.py": "", "z.py": ""}
    )
    given = {"rules": ["I001"]}
    whole = LINT.apply(given, DictView(files))
    cut = LINT.apply(given, DictView(files, reach=Reach(shard=Shard(start="app", stop="app0"))))

    assert cut.changes == whole.changes
    assert after({}, whole) == {"app/a.py": b"import os\n\nimport requests\n\nimport mine\n"}


def test_modes_stay_and_links_are_left() -> None:
    files = as_bytes({"a.py": LIST, "link.py": LIST})

    changes = LINT.apply(
        {"rules": ["UP006"]}, DictView(files, modes={"a.py": "100755", "link.py": "120000"})
    ).changes

    assert {path: new.mode for path, new in changes.items() if new} == {"a.py": "100755"}


@pytest.mark.parametrize(
    ("before", "after_it"),
    [
        ("from __future__ import division\n\nimport a\n", "import a\n"),
        ('"""Doc."""\n\nfrom __future__ import division\n\nimport a\n', '"""Doc."""\n\nimport a\n'),
        ('"""Doc."""\nfrom __future__ import division\n\nimport a\n', '"""Doc."""\n\nimport a\n'),
        ("# one\n\nfrom __future__ import division\n\n\ndef f(): ...\n", "# one\n\n\ndef f(): ...\n"),
        ("\r\nfrom __future__ import division\r\n\r\nimport a\r\n", "\r\nimport a\r\n"),
        ("\ufefffrom __future__ import division\n\nimport a\n", "\ufeffimport a\n"),
        ("from __future__ import division\n\n", ""),
        ("# one\n\nfrom __future__ import division\n", "# one\n"),
    ],
)
def test_blank_lines_around_a_line_that_went_are_joined(before: str, after_it: str) -> None:
    result = run(LINT, {"rules": ["UP010"]}, {"a.py": before})

    assert after({}, result) == {"a.py": after_it.encode()}


def test_blank_lines_elsewhere_stay_where_a_line_went() -> None:
    rest = 'x = """\n\n\n\n"""\n\n\n\n\n\ny = 1\n'

    result = run(LINT, {"rules": ["UP010"]}, {"a.py": "from __future__ import division\n" + rest})

    assert after({}, result) == {"a.py": rest.encode()}


def test_what_is_left_is_named_with_its_line_after_blank_lines_went() -> None:
    before = "import os\n\n\nx = None\nx == None\n"
    why = "E711 not fixed: Comparison to `None` should be `cond is None` (ruff has an unsafe fix for it: `unsafe: true`)"

    assert residue({"a.py": before}, rules=["F401", "E711"]) == [("a.py", 2, why)]


def test_blank_lines_inside_a_string_are_never_joined() -> None:
    before, after_it = 'x = """a\n\nb\n\nc"""\n', 'x = """a\n\n\nc"""\n'

    assert closed_gaps(before, after_it).text == after_it
    assert closed_gaps("a = 1\n\nb = 2\n\nc = 3\n", "a = 1\n\n\nc = 3\n").text == "a = 1\n\nc = 3\n"


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("3.10", "py310"),
        ("python3.11", "py311"),
        (">=3.9", "py39"),
        ("py32", "py37"),
        ("py31O", "py37"),
        ("Py312", "py312"),
    ],
)
def test_a_target_that_ruff_does_not_know_is_refused_with_the_nearest(target: str, meant: str) -> None:
    with pytest.raises(ContractError, match=f"knows no '{target}'; it knows py37, .*Did you mean '{meant}'"):
        LintFix().check({"rules": ["UP006"], "target": target})


def test_a_target_that_ruff_knows_is_taken() -> None:
    LintFix().check({"rules": ["UP006"], "target": "py310"})

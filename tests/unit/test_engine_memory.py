"""Files that were seen before are taken from the memory, and nothing else changes by that."""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engines.api import Engine, EngineResult
from engines.lint_fix import LintFix
from engines.memory import Memory, apply_remembering
from engines.rewrite import PatternRewrite
from engines.text_replace import TextReplace
from tests.unit.engine_cases import pattern
from workspace.view import DictView

FILES = {
    "a.py": b"from typing import List\nfoo(1)\nx: List[int]\n",
    "b.py": b"# foo(2)\r\nfoo(2)\r\n",
    "broken.py": b"def foo(:\n    foo(3)\n",
    "latin.py": b"# coding: latin-1\ns = '\xe9'\nfoo(4)\n",
    "odd\udcff.py": b"foo('\xff')\n",
    "quiet.py": b"pass\n",
    "notes.txt": b"foo( and \xff\n",
}
RULES: list[tuple[Engine, Mapping[str, Any]]] = [
    (PatternRewrite(), pattern("foo($A)", "bar($A)")),
    (TextReplace(), {"find": "foo", "replace": "foo2"}),
    (LintFix(), {"rules": ["UP006"], "target": "py39"}),
]


class Asked(DictView):
    """A view that tells which files were read."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(files)
        self.asked: list[str] = []

    def read_many(self, paths: Any) -> Any:
        wanted = list(paths)
        self.asked += wanted
        return super().read_many(wanted)


@pytest.mark.parametrize(("engine", "rule"), RULES, ids=lambda one: getattr(one, "contract", ""))
def test_the_second_time_nothing_is_read_and_the_account_is_the_same(
    engine: Engine, rule: Mapping[str, Any], tmp_path: Path
) -> None:
    plain = engine.apply(rule, DictView(FILES))
    first = apply_remembering(engine, rule, DictView(FILES), Memory(tmp_path))
    view = Asked(FILES)

    second = apply_remembering(engine, rule, view, Memory(tmp_path))

    assert (first, second) == (plain, plain)
    assert view.asked == []


@pytest.mark.parametrize(("engine", "rule"), RULES, ids=lambda one: getattr(one, "contract", ""))
def test_only_the_file_that_changed_is_read_again(
    engine: Engine, rule: Mapping[str, Any], tmp_path: Path
) -> None:
    apply_remembering(engine, rule, DictView(FILES), Memory(tmp_path))
    later = FILES | {"b.py": b"foo(5)\n"}
    view = Asked(later)

    result = apply_remembering(engine, rule, view, Memory(tmp_path))

    assert view.asked == ["b.py"]
    assert result == engine.apply(rule, DictView(later))


def test_another_rule_another_name_and_another_version_are_not_mixed_up(tmp_path: Path) -> None:
    engine, memory = PatternRewrite(), Memory(tmp_path)
    apply_remembering(engine, pattern("foo($A)", "bar($A)"), DictView(FILES), memory)

    other_rule = apply_remembering(engine, pattern("foo($A)", "qux($A)"), DictView(FILES), memory)
    moved = apply_remembering(
        engine, pattern("foo($A)", "bar($A)"), DictView({"c.py": FILES["broken.py"]}), memory
    )
    newer = PatternRewrite()
    newer.version = "another"
    view = Asked(FILES)
    apply_remembering(newer, pattern("foo($A)", "bar($A)"), view, memory)

    assert other_rule == engine.apply(pattern("foo($A)", "qux($A)"), DictView(FILES))
    assert [one.path for one in moved.residue] == ["c.py"]
    assert len(view.asked) == len([path for path in FILES if path.endswith(".py")])


def test_a_fix_that_looks_at_the_packages_around_is_not_remembered_for_others(tmp_path: Path) -> None:
    """What ruff calls first-party follows from the packages that stand there."""
    rule, text = {"rules": ["I001"]}, b"import os\nimport shop\nimport sys\n\nimport zope\n"
    alone, among = {"app.py": text}, {"app.py": text, "shop/__init__.py": b""}
    memory = Memory(tmp_path)

    results = [apply_remembering(LintFix(), rule, DictView(files), memory) for files in (alone, among)]

    assert results == [LintFix().apply(rule, DictView(files)) for files in (alone, among)]
    assert results[0].changes["app.py"] != results[1].changes["app.py"]


def test_with_the_settings_of_the_repository_nothing_is_remembered(tmp_path: Path) -> None:
    rule = {"rules": ["UP006"], "config": "repository"}
    files = {"a.py": FILES["a.py"], "ruff.toml": b'target-version = "py39"\n'}
    apply_remembering(LintFix(), rule, DictView(files), Memory(tmp_path))
    later = files | {"ruff.toml": b'exclude = ["a.py"]\n'}

    result = apply_remembering(LintFix(), rule, DictView(later), Memory(tmp_path))

    assert result == LintFix().apply(rule, DictView(later))
    assert not result.changes


def test_a_damaged_memory_is_begun_anew(tmp_path: Path) -> None:
    engine, rule = RULES[0]
    plain = _filled(tmp_path)
    (tmp_path / "results.sqlite").write_bytes(b"not a database at all" * 1000)
    (tmp_path / "results.sqlite-wal").unlink(missing_ok=True)

    damaged = apply_remembering(engine, rule, DictView(FILES), Memory(tmp_path))
    apply_remembering(engine, rule, DictView(FILES), Memory(tmp_path))
    view = Asked(FILES)
    healed = apply_remembering(engine, rule, view, Memory(tmp_path))

    assert (damaged, healed) == (plain, plain)
    assert view.asked == []


def test_a_damaged_result_is_worked_out_again(tmp_path: Path) -> None:
    engine, rule = RULES[0]
    plain = _filled(tmp_path)
    with sqlite3.connect(tmp_path / "results.sqlite") as database:
        database.execute("UPDATE results SET result = substr(result, 1, 20) WHERE result != x''")

    assert apply_remembering(engine, rule, DictView(FILES), Memory(tmp_path)) == plain


def test_a_memory_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    engine, rule = RULES[0]
    (tmp_path / "taken").write_text("a file where the folder should be")

    result = apply_remembering(engine, rule, DictView(FILES), Memory(tmp_path / "taken"))

    assert result == engine.apply(rule, DictView(FILES))


def test_a_memory_that_another_slot_holds_is_not_waited_for(tmp_path: Path) -> None:
    engine, rule = RULES[0]
    plain = _filled(tmp_path)
    holder = sqlite3.connect(tmp_path / "results.sqlite", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    later = FILES | {"new.py": b"foo(6)\n"}
    result = apply_remembering(engine, rule, DictView(later), Memory(tmp_path))
    holder.close()

    assert result.sites == plain.sites + 1


def test_beyond_its_limit_the_oldest_is_forgotten(tmp_path: Path) -> None:
    engine, rule = RULES[0]
    memory = Memory(tmp_path, limit_bytes=64 * 1024)
    for number in range(40):
        files = {f"f{number}_{n}.py": b"foo(1)\n" + b"x = '%d'\n" % (number * n) * 30 for n in range(20)}
        apply_remembering(engine, rule, DictView(files), memory)
    with sqlite3.connect(tmp_path / "results.sqlite") as database:
        (kept,) = database.execute("SELECT count(*) FROM results").fetchone()
        (newest,) = database.execute("SELECT max(number) FROM results").fetchone()

    assert 20 <= kept < newest


def _filled(folder: Path) -> EngineResult:
    engine, rule = RULES[0]
    return apply_remembering(engine, rule, DictView(FILES), Memory(folder))

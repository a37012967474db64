"""The demonstration's package: checked by its digest, and the same base commit every time."""

import io
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from rolecall.demo.package import ARROW, Package, fetched, made_repository
from rolecall.demo.recipe_place import RECIPE
from schemas.contracts import ContractRegistry
from schemas.errors import SettingsError
from schemas.recipe_file import load_recipe
from tests.unit.workspace_repos import run_git


def release(folder: Path) -> Package:
    archive = folder / "tiny-1.0.tar.gz"
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:gz") as tar:
        for name, data in (
            ("tiny-1.0/tiny.py", b"x = 1\n"),
            ("tiny-1.0/.gitignore", b"*.txt\n"),
            ("tiny-1.0/a.txt", b"a\n"),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return Package("tiny", "1.0", sha256(archive.read_bytes()).hexdigest(), ())


def test_a_release_becomes_a_repository_with_one_commit_that_is_the_same_every_time(tmp_path: Path) -> None:
    package = release(tmp_path / "downloads")
    archive = fetched(package, tmp_path / "downloads")

    commits = []
    for _ in range(2):
        repository = made_repository(package, archive, tmp_path / "tiny")
        commits.append(run_git(repository, "rev-parse", "HEAD"))

    assert commits[0] == commits[1]
    assert run_git(repository, "status", "--porcelain") == ""
    assert set(run_git(repository, "ls-files").split()) == {".gitignore", "a.txt", "tiny.py"}


def test_a_file_that_is_not_the_release_is_refused_and_removed(tmp_path: Path) -> None:
    package = release(tmp_path / "downloads")
    (tmp_path / "downloads" / package.file_name).write_bytes(b"something else")

    with pytest.raises(SettingsError, match="not the file it should be"):
        fetched(package, tmp_path / "downloads")

    assert list((tmp_path / "downloads").iterdir()) == []


def test_offline_the_demonstration_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, "1" if name == "PIP_NO_INDEX" else str(tmp_path))

    with pytest.raises(SettingsError, match="offline"):
        fetched(ARROW, tmp_path / "downloads")


def test_the_demonstrations_recipe_has_at_least_four_rules_of_three_kinds() -> None:
    recipe = load_recipe(RECIPE, ContractRegistry.builtin())

    kinds = [rule.contract.split("@")[0] for rule in recipe.rules]
    assert len(kinds) >= 4
    assert kinds.count("rewrite.pattern") >= 2
    assert {"rewrite.pattern", "text.replace", "lint.fix"} == set(kinds)
    assert any(rule.input.get("imports", {}).get("add") for rule in recipe.rules)

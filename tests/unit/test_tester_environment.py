"""Choosing the Python environment of the tests."""

from pathlib import Path

import pytest

from schemas.errors import SettingsError
from tester.environment import Environment, choose_environment


def environment_at(folder: Path, python: str = "python") -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / python).touch()
    (folder / "pyvenv.cfg").touch()
    return folder


def nowhere(_: str) -> str | None:
    return None


def test_the_option_wins(tmp_path: Path) -> None:
    named, active = environment_at(tmp_path / "named"), environment_at(tmp_path / "active")
    environment_at(tmp_path / ".venv")

    chosen = choose_environment(tmp_path, option="named", virtual_env=str(active), which=nowhere)

    assert chosen == Environment(named, "python", "option")


def test_the_option_may_name_the_interpreter(tmp_path: Path) -> None:
    named = environment_at(tmp_path / "named", "python3")

    chosen = choose_environment(tmp_path, option="named/bin/python3", virtual_env=None, which=nowhere)

    assert chosen == Environment(named, "python3", "option")


def test_an_option_that_names_no_environment_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="python -m venv"):
        choose_environment(tmp_path, option="nothing", virtual_env=None, which=nowhere)


def test_the_active_environment_comes_before_the_repositorys_own(tmp_path: Path) -> None:
    active = environment_at(tmp_path / "active")
    environment_at(tmp_path / ".venv")

    chosen = choose_environment(tmp_path, option=None, virtual_env=str(active), which=nowhere)

    assert chosen == Environment(active, "python", "$VIRTUAL_ENV")


@pytest.mark.parametrize("name", [".venv", "venv"])
def test_an_environment_in_the_repository_is_found(tmp_path: Path, name: str) -> None:
    inside = environment_at(tmp_path / name)

    chosen = choose_environment(tmp_path, option=None, virtual_env=str(tmp_path / "gone"), which=nowhere)

    assert chosen == Environment(inside, "python", name)


def test_a_folder_called_venv_that_is_none_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir()

    chosen = choose_environment(
        tmp_path, option=None, virtual_env=None, which={"python3": "/opt/py/bin/python3"}.get
    )

    assert chosen == Environment(Path("/opt/py"), "python3", "PATH")


def test_a_machine_without_python_has_no_environment(tmp_path: Path) -> None:
    assert choose_environment(tmp_path, option=None, virtual_env=None, which=nowhere) is None

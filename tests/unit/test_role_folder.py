"""A role's folder may hold anything: nothing in it stands for our own packages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rolecall.plugin import TRIAL
from schemas.errors import SettingsError
from workspace.child_start import try_in_child

ROLE = """
from rolecall import Contract, Result, Role


class Shout(Role):
    contract = Contract({"name": "text.shout", "input": {"type": "object"}})

    def handle(self, input, files):
        return Result()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shout.py").write_text(ROLE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    return tmp_path


def test_a_worker_loads_a_role_beside_a_clone_of_this_project(folder: Path) -> None:
    (folder / "rolecall/rolecall").mkdir(parents=True)

    try_in_child(TRIAL, "shout:Shout", str(folder))


def test_a_module_in_the_roles_folder_does_not_stand_for_one_of_ours(folder: Path) -> None:
    (folder / "schemas.py").write_text("raise RuntimeError('not ours')\n")

    try_in_child(TRIAL, "shout:Shout", str(folder))


def test_a_role_that_no_worker_can_load_ends_the_command_with_the_reason(folder: Path) -> None:
    (folder / "shout.py").write_text(
        f"import os\nif os.getpid() != {os.getpid()}:\n    import not_there\n{ROLE}"
    )

    with pytest.raises(SettingsError, match=r"worker process: .*not_there"):
        try_in_child(TRIAL, "shout:Shout", str(folder))


def test_our_packages_are_found_first_when_a_hook_knows_them_only(folder: Path) -> None:
    (folder / "rolecall").mkdir()
    ours = str(Path(__file__).resolve().parents[2])
    code = f"""
import sys
sys.path.append({ours!r})
from workspace.child_start import try_in_child
sys.path.remove({ours!r})
try_in_child({TRIAL!r}, "shout:Shout", {str(folder)!r})
"""

    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")

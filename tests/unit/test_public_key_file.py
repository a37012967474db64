"""A supervisor publishes its key in a file, and roles that share the folder read it there."""

import sys
from pathlib import Path

from bus.settings import active_virtual_env, load_settings
from supervisor.__main__ import publish_key

KEY = bytes(range(32))


def environ(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(tmp_path), "ROLECALL_PUBLIC_KEY_FILE": str(tmp_path / "grants.pub"), **more}


def test_a_published_key_is_what_roles_check_grants_with(tmp_path: Path) -> None:
    before = load_settings(environ(tmp_path))
    publish_key(KEY, tmp_path / "grants.pub")
    publish_key(KEY, tmp_path / "grants.pub")

    after = load_settings(environ(tmp_path))

    assert (before.public_key, after.public_key) == (None, KEY)
    assert after.public_key_file == tmp_path / "grants.pub"
    assert [one.name for one in tmp_path.iterdir()] == ["grants.pub"]


def test_a_key_that_is_given_goes_before_the_file(tmp_path: Path) -> None:
    publish_key(KEY, tmp_path / "grants.pub")

    found = load_settings(environ(tmp_path, ROLECALL_PUBLIC_KEY="ab" * 32))

    assert found.public_key == b"\xab" * 32


def test_our_own_environment_is_not_taken_for_the_one_of_the_tests() -> None:
    assert active_virtual_env({"VIRTUAL_ENV": sys.prefix}) is None
    assert active_virtual_env({"VIRTUAL_ENV": "/home/ada/.venv"}) == "/home/ada/.venv"
    assert active_virtual_env({}) is None

"""Files with secrets: nobody else reads, writes or plants them."""

import os
import stat
from pathlib import Path

import pytest

from bus.connection_file import (
    Connection,
    live_connection,
    read_connection,
    remove_connection,
    write_connection,
)
from bus.grants import SigningKey
from bus.instance import is_alive, started_us
from bus.owner_only import make_folder, read_owner_only, write_owner_only
from schemas.errors import SettingsError


def connection_of_this_process(**changes: object) -> Connection:
    start = started_us(os.getpid())
    told = {
        "broker_url": "amqp://u:pw@h/",
        "hub": "/hub",
        "public_key": "ab" * 32,
        "pid": os.getpid(),
        "started_at": start,
    }
    return Connection.model_validate(told | changes)


def test_a_file_comes_back_as_written_and_only_its_owner_can_use_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / "secret"

    write_owner_only(path, b"one")
    write_owner_only(path, b"two")

    assert read_owner_only(path) == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["secret"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o666])
def test_a_file_that_others_can_use_is_refused_and_the_answer_says_what_to_do(
    tmp_path: Path, mode: int
) -> None:
    path = tmp_path / "secret"
    write_owner_only(path, b"x")
    path.chmod(mode)

    with pytest.raises(SettingsError, match="chmod 600"):
        read_owner_only(path)


def test_a_file_in_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "open" / "secret"
    write_owner_only(path, b"x")
    path.parent.chmod(0o777)

    with pytest.raises(SettingsError, match="can be written by others"):
        read_owner_only(path)
    with pytest.raises(SettingsError, match="can be written by others"):
        write_owner_only(path, b"y")


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    write_owner_only(path, b"x")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    with pytest.raises(SettingsError, match="belongs to user"):
        read_owner_only(path)


def test_a_link_or_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    write_owner_only(tmp_path / "real", b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "folder").mkdir()

    with pytest.raises(SettingsError):
        read_owner_only(tmp_path / "link")
    with pytest.raises(SettingsError):
        read_owner_only(tmp_path / "folder")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret"
    write_owner_only(path, b"old")

    def no_space(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        write_owner_only(path, b"new")

    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]


def test_the_connection_file_tells_where_the_running_stack_is(tmp_path: Path) -> None:
    connection = connection_of_this_process()

    write_connection(tmp_path, connection)

    assert live_connection(tmp_path) == connection
    assert "pw" not in repr(connection)


def test_a_connection_file_whose_writer_is_gone_is_not_believed(tmp_path: Path) -> None:
    another_life = connection_of_this_process(started_at=1_000_000)

    write_connection(tmp_path, another_life)

    assert read_connection(tmp_path) == another_life
    assert live_connection(tmp_path) is None


def test_no_connection_file_means_that_nothing_runs(tmp_path: Path) -> None:
    assert live_connection(tmp_path) is None


def test_a_garbled_connection_file_is_refused_by_name(tmp_path: Path) -> None:
    write_owner_only(tmp_path / "connection.json", b"{half")

    with pytest.raises(SettingsError, match=r"connection\.json"):
        read_connection(tmp_path)


def test_a_stack_removes_its_own_connection_file_and_no_other(tmp_path: Path) -> None:
    mine, other = connection_of_this_process(), connection_of_this_process(hub="/other")
    write_connection(tmp_path, other)

    remove_connection(tmp_path, mine)
    kept = read_connection(tmp_path)
    remove_connection(tmp_path, other)

    assert kept == other
    assert read_connection(tmp_path) is None


def test_the_signing_key_is_made_once_and_kept_from_others(tmp_path: Path) -> None:
    first = SigningKey.load_or_create(tmp_path / "signing.key")
    second = SigningKey.load_or_create(tmp_path / "signing.key")

    assert first.public_key == second.public_key
    assert stat.S_IMODE((tmp_path / "signing.key").stat().st_mode) == 0o600


def test_a_signing_key_of_the_wrong_length_is_refused(tmp_path: Path) -> None:
    write_owner_only(tmp_path / "signing.key", b"short")

    with pytest.raises(SettingsError, match="not a signing key"):
        SigningKey.load(tmp_path / "signing.key")


def test_a_pid_alone_is_not_a_process() -> None:
    start = started_us(os.getpid())
    assert start is not None

    assert is_alive(os.getpid(), start)
    assert not is_alive(os.getpid(), start - 60_000_000)
    assert not is_alive(2**22 + 1, start)


def test_a_folder_that_cannot_be_made_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "state").touch()

    with pytest.raises(SettingsError, match=r"The folder .*/state/rolecall cannot be made: .*XDG_STATE_HOME"):
        make_folder(tmp_path / "state" / "rolecall")

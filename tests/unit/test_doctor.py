"""The doctor: each finding says what is wrong and what to do."""

from pathlib import Path

import pytest

from bus.settings import Settings, load_settings
from rolecall import doctor
from rolecall.doctor import Finding, Grade
from schemas.errors import ExitCode, SettingsError


def settings(tmp_path: Path, **changes: str | None) -> Settings:
    home = {"HOME": str(tmp_path), "ROLECALL_ENVIRONMENT": "test"}
    return load_settings(home, **changes)


def finding(name: str, found: tuple[Finding, ...]) -> Finding:
    return next(one for one in found if one.name == name)


def test_a_machine_that_can_run_this_suite_is_found_fit_for_python_git_state_and_packages(
    tmp_path: Path,
) -> None:
    found = doctor.examine(settings(tmp_path))

    fit = {one.name for one in found if one.grade is Grade.OK}
    assert {"rolecall", "python", "git", "state folder", "stack", "packages"} <= fit


def test_a_state_folder_that_others_can_read_is_a_failure_with_the_command_that_mends_it(
    tmp_path: Path,
) -> None:
    mine = settings(tmp_path)
    mine.state_dir.mkdir(parents=True)
    mine.state_dir.chmod(0o755)

    found = finding("state folder", doctor.examine(mine))

    assert found.grade is Grade.FAIL
    assert found.advice == f"`chmod 700 {mine.state_dir}`"


def test_a_broker_that_does_not_answer_is_a_failure_that_shows_no_password(tmp_path: Path) -> None:
    found = doctor.examine(settings(tmp_path, broker_url="amqp://ada:hunter22@127.0.0.1:1/"))

    assert finding("rabbitmq", found).grade is Grade.FAIL
    assert "hunter22" not in "".join(text for _, text in doctor.lines(found))
    assert doctor.exit_code(found) == ExitCode.FAILED


def test_without_rabbitmq_it_warns_that_only_solo_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rolecall.processes.rabbitmq_install.find_rabbitmq", lambda: None)

    found = finding("rabbitmq", doctor.examine(settings(tmp_path)))

    assert found.grade is Grade.WARN
    assert "in one process" in found.text
    assert "apt-get install rabbitmq-server" in found.advice


def test_a_missing_sandbox_is_a_failure_and_a_switched_off_one_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: object) -> None:
        raise SettingsError("There is no bwrap.", suggestion="Install bubblewrap.")

    monkeypatch.setattr("workspace.sandbox.check_sandbox", missing)

    without = finding("sandbox", doctor.examine(settings(tmp_path)))
    switched_off = finding("sandbox", doctor.examine(settings(tmp_path, sandbox="none")))

    assert (without.grade, without.advice) == (Grade.FAIL, "Install bubblewrap.")
    assert switched_off.grade is Grade.WARN


@pytest.mark.parametrize(("free", "grade"), [(100, Grade.FAIL), (1000, Grade.WARN), (9000, Grade.OK)])
def test_a_disk_is_judged_by_what_a_run_needs(
    free: int, grade: Grade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free: int = 0

    usage = Usage()
    usage.free = free * doctor.MIB
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)

    assert finding("disk", doctor.examine(settings(tmp_path))).grade is grade

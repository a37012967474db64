"""RabbitMQ is found where packages put it, the lean view holds what the broker needs, and what is missing is said."""

from pathlib import Path

import pytest

from rolecall.processes import rabbitmq_install
from rolecall.processes.rabbitmq_install import RabbitInstall, find_rabbitmq, lean_view, need_rabbitmq
from schemas.errors import SettingsError


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without RabbitMQ; `tmp_path/bin` is all of its PATH."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(rabbitmq_install, "_PLACES", ())
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def install(home: Path, version: str = "3.13.2", **applications: str) -> Path:
    """Lay out a RabbitMQ; `applications` maps names to what they need. Returns its start script."""
    (home / "sbin").mkdir(parents=True)
    (home / "escript").mkdir()
    needs = {
        "rabbit": "kernel, rabbit_common, rabbitmq_prelaunch",
        "rabbit_common": "stdlib",
        "rabbitmq_prelaunch": "",
    }
    for name, wanted in (needs | applications).items():
        ebin = home / "plugins" / f"{name}-{version}" / "ebin"
        ebin.mkdir(parents=True)
        (ebin / f"{name}.app").write_text(f"{{application, {name}, [{{applications, [{wanted}]}}]}}.")
    script = home / "sbin" / "rabbitmq-server"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return script


def test_a_machine_without_rabbitmq_is_told_how_to_get_it(machine: Path) -> None:
    assert find_rabbitmq() is None
    with pytest.raises(SettingsError, match=r"apt-get install rabbitmq-server.*--broker"):
        need_rabbitmq()


def test_it_is_found_on_the_path_behind_a_link(machine: Path) -> None:
    script = install(machine / "rabbitmq_server-3.13.2")
    (machine / "bin" / "rabbitmq-server").symlink_to(script)

    assert find_rabbitmq() == RabbitInstall(script, machine / "rabbitmq_server-3.13.2", (3, 13, 2))


def test_the_wrapper_that_switches_users_is_not_taken_for_the_server(machine: Path) -> None:
    wrapper = machine / "rabbitmq-script-wrapper"
    wrapper.write_text("#!/bin/sh\n")
    wrapper.chmod(0o755)
    (machine / "bin" / "rabbitmq-server").symlink_to(wrapper)

    assert find_rabbitmq() is None


def test_a_version_without_what_we_need_is_refused(machine: Path) -> None:
    (machine / "bin" / "rabbitmq-server").symlink_to(install(machine / "home", "3.9.13"))

    with pytest.raises(SettingsError, match=r"RabbitMQ 3\.9\.13.*too old; 3\.10"):
        need_rabbitmq()


def test_the_lean_view_holds_what_the_broker_needs_and_nothing_else(machine: Path) -> None:
    script = install(
        machine / "home",
        rabbit_common="ra",
        ra="aten",
        aten="",
        rabbitmq_management="rabbit",
        rabbitmq_mqtt="rabbit",
    )

    scripts = lean_view(RabbitInstall(script, machine / "home", ()), machine / "lean")

    assert scripts == machine / "lean" / "sbin"
    assert sorted(path.name for path in (machine / "lean" / "plugins").iterdir()) == [
        "aten-3.13.2",
        "ra-3.13.2",
        "rabbit-3.13.2",
        "rabbit_common-3.13.2",
        "rabbitmq_prelaunch-3.13.2",
    ]
    assert (scripts / "rabbitmq-server").is_file()


def test_there_is_no_lean_view_of_an_installation_that_looks_otherwise(machine: Path) -> None:
    script = install(machine / "home")
    (machine / "home" / "plugins" / "rabbit_common-3.13.2").rename(
        machine / "home" / "plugins" / "rabbit_common.ez"
    )

    assert lean_view(RabbitInstall(script, machine / "home", ()), machine / "lean") is None


def test_there_is_no_lean_view_where_the_scripts_could_not_read_it(machine: Path) -> None:
    script = install(machine / "home")

    assert lean_view(RabbitInstall(script, machine / "home", ()), machine / "with blank") is None

"""Where each setting comes from, and what a wrong one is answered with."""

import os
from pathlib import Path

import pytest

from bus.connection_file import Connection, write_connection
from bus.instance import instance_name, started_us
from bus.settings import Sandbox, load_settings, role_settings
from schemas.errors import SettingsError

KEY = "ab" * 32


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path), "ROLECALL_ENVIRONMENT": "test", "HOME": str(tmp_path / "home")}


def running_stack(environ: dict[str, str]) -> Connection:
    connection = Connection(
        broker_url="amqp://u:pw@127.0.0.1/",
        hub="/the/hub",
        public_key=KEY,
        pid=os.getpid(),
        started_at=started_us(os.getpid()) or 0,
    )
    write_connection(
        Path(environ["XDG_STATE_HOME"]) / "rolecall" / environ["ROLECALL_ENVIRONMENT"], connection
    )
    return connection


def test_a_second_terminal_needs_no_options(environ: dict[str, str]) -> None:
    stack = running_stack(environ)

    settings = load_settings(environ)

    assert (settings.broker_url, settings.hub, settings.public_key) == (
        stack.broker_url,
        stack.hub,
        bytes.fromhex(KEY),
    )


def test_an_option_wins_over_the_environment_and_that_over_the_default(environ: dict[str, str]) -> None:
    environ |= {"ROLECALL_LOG_LEVEL": "debug", "ROLECALL_SANDBOX": "none", "ROLECALL_METRICS_PORT": "9100"}

    settings = load_settings(environ, log_level="error")

    assert (settings.log_level, settings.sandbox, settings.metrics_port) == ("error", Sandbox.NONE, 9100)


def test_a_named_broker_is_never_mixed_with_the_hub_and_key_of_another_stack(environ: dict[str, str]) -> None:
    running_stack(environ)

    settings = load_settings(environ, broker_url="amqp://elsewhere/")

    assert (settings.broker_url, settings.hub, settings.public_key) == ("amqp://elsewhere/", None, None)
    with pytest.raises(SettingsError, match="--hub"):
        _ = settings.hub_place
    with pytest.raises(SettingsError, match="--public-key"):
        _ = settings.supervisor_key


def test_naming_the_running_stacks_own_broker_finds_the_rest(environ: dict[str, str]) -> None:
    stack = running_stack(environ)

    assert load_settings(environ, broker_url=stack.broker_url).hub == stack.hub


def test_without_any_broker_the_answer_says_how_to_get_one(environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="rolecall up"):
        _ = load_settings(environ).broker_urls


def test_several_brokers_are_tried_in_order(environ: dict[str, str]) -> None:
    settings = load_settings(environ, broker_url="amqp://one/, amqp://two/")

    assert settings.broker_urls == ("amqp://one/", "amqp://two/")


def test_the_brokers_password_does_not_show(environ: dict[str, str]) -> None:
    assert "pw" not in repr(load_settings(environ, broker_url="amqp://u:pw@h/"))


@pytest.mark.parametrize("name", ["a.b", "a/b", "../x", "a b", "-a", "ü", "x" * 65])
def test_a_name_that_cannot_be_an_environment_is_refused(environ: dict[str, str], name: str) -> None:
    with pytest.raises(SettingsError, match="environment"):
        load_settings(environ, environment=name)


def test_the_default_environment_is_user_and_host_and_can_be_an_environment(environ: dict[str, str]) -> None:
    del environ["ROLECALL_ENVIRONMENT"]

    name = load_settings(environ).environment

    assert load_settings(environ, environment=name).environment == name


def test_a_relative_state_home_counts_as_not_set(environ: dict[str, str]) -> None:
    environ["XDG_STATE_HOME"] = "here"

    assert load_settings(environ).state_dir == Path(environ["HOME"]) / ".local/state/rolecall/test"


@pytest.mark.parametrize(
    ("setting", "value", "hint"),
    [
        ("sandbox", "bubblewarp", "'bubblewrap'"),
        ("log_level", "verbose", "debug, info"),
        ("public_key", "xyz", "64 hexadecimal"),
        ("public_key", "abcd", "64 hexadecimal"),
        ("metrics_port", "http", "no port"),
        ("metrics_port", "70000", "no port"),
    ],
)
def test_a_wrong_setting_is_answered_with_what_would_be_right(
    environ: dict[str, str], setting: str, value: str, hint: str
) -> None:
    with pytest.raises(SettingsError, match=hint):
        load_settings(environ, **{setting: value})


def test_a_roles_options_become_its_settings(environ: dict[str, str]) -> None:
    argv = [
        "--broker",
        "amqp://h/",
        "--hub",
        "/hub",
        "--public-key",
        KEY,
        "--slots",
        "3",
        "--parent-pid",
        "7",
        "--wait-for-broker",
        "2.5",
    ]

    settings = role_settings("executor", argv, environ)

    assert (settings.role, settings.slots, settings.parent_pid, settings.wait_for_broker_s) == (
        "executor",
        3,
        7,
        2.5,
    )
    assert (settings.broker_urls, settings.hub_place, settings.supervisor_key) == (
        ("amqp://h/",),
        "/hub",
        bytes.fromhex(KEY),
    )


@pytest.mark.parametrize(
    "argv",
    [["--slots", "0"], ["--slots", "many"], ["--wait-for-broker", "-1"], ["--sandbox", "no"], ["--what"]],
)
def test_a_wrong_option_ends_with_the_usage_exit_code(
    environ: dict[str, str], argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        role_settings("executor", argv, environ)

    assert caught.value.code == 2
    assert "usage: python -m executor" in capsys.readouterr().err


def test_the_name_of_an_instance_fits_a_routing_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "a.host name.example")

    name = instance_name("tester")

    assert name.startswith(f"a_host_name_example-{os.getpid()}-")
    assert name.endswith("-tester")
    assert "." not in name

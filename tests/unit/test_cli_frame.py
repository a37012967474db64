"""The frame of the command line: what a user gets for a wrong word, an error, an interruption."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from rolecall import command_table
from rolecall.__main__ import INTERRUPTED, main
from schemas.errors import BrokerUnreachableError, ContractError, ExitCode
from schemas.version import VERSION


def test_an_unknown_command_gets_the_nearest_name_and_a_usage_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["staus"])

    assert code == ExitCode.USAGE
    assert "There is no command 'staus'. Did you mean `rolecall status`?" in capsys.readouterr().err


def test_an_unknown_option_gets_the_nearest_name_and_a_usage_code(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["list", "--sinse", "today"])

    said = capsys.readouterr().err
    assert code == ExitCode.USAGE
    assert "--since" in said
    assert "`rolecall list --help`" in said


def test_every_command_of_the_table_can_be_imported_and_has_the_name_that_the_table_says() -> None:
    context = click.Context(command_table.program)

    names = {
        entry.name: command.name
        for entry in command_table.TABLE
        if (command := command_table.program.get_command(context, entry.name)) is not None
    }

    assert names == {entry.name: entry.name for entry in command_table.TABLE}


def test_help_and_version_import_no_command() -> None:
    look = (
        "import sys; from rolecall.__main__ import main; main(['--help']); main(['--version']);"
        "print([m for m in sys.modules if m.startswith(('rolecall.commands.', 'pydantic', 'sqlalchemy', 'rich'))])"
    )

    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-2:] == [f"rolecall {VERSION}", "[]"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ContractError("The recipe is wrong.", suggestion="Mend line 3."), ExitCode.USAGE),
        (BrokerUnreachableError("Nobody answers."), ExitCode.BROKER_UNREACHABLE),
    ],
)
def test_an_error_of_ours_is_one_line_and_its_own_exit_code(
    error: ContractError, code: ExitCode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _let_list_raise(monkeypatch, error)

    found = main(["list"])

    said = capsys.readouterr()
    assert found == code
    assert said.err == f"rolecall: {error}\n"
    assert said.out == ""


def test_ctrl_c_ends_a_command_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _let_list_raise(monkeypatch, KeyboardInterrupt())

    assert main(["list"]) == INTERRUPTED
    assert capsys.readouterr().err.strip() == ""


def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m rolecall contracts --json | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("[\n", "")


def _let_list_raise(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def command(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("rolecall.commands.list.command.callback", command)

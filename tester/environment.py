"""Which Python environment the tests run in: named by the user, active in the user's shell, or lying in the repository."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import SettingsError

# The names that people, and the tools they use, give to the environment of a repository.
_USUAL_NAMES = (".venv", "venv")


@dataclass(frozen=True, slots=True)
class Environment:
    """A folder with `bin/<python>` in it, the name of that interpreter, and where the choice came from."""

    folder: Path
    python: str
    found_in: str


def choose_environment(
    repository: Path,
    *,
    option: str | None,
    virtual_env: str | None,
    which: Callable[[str], str | None],
) -> Environment | None:
    """The environment to activate, or None if this machine has no Python.

    In order: the option, `$VIRTUAL_ENV` (`virtual_env`), `.venv` or `venv` in the repository, the interpreter on the
    PATH (`which` looks a program up there). Raises SettingsError if the option names no environment.
    """
    if option is not None:
        return _named(option, repository)
    if virtual_env:
        active = _at(Path(virtual_env), "$VIRTUAL_ENV")
        if active is not None:
            return active
    for name in _USUAL_NAMES:
        inside = _at(repository / name, name)
        if inside is not None and (inside.folder / "pyvenv.cfg").is_file():
            return inside
    return _on_path(which)


def activated(folder: str | None, variables: Mapping[str, str], *, system_path: str) -> dict[str, str]:
    """The variables with the environment switched on, as its `activate` script would: PATH first, VIRTUAL_ENV."""
    path = variables.get("PATH", system_path)
    if folder is None:
        return {**variables, "PATH": path}
    active = {**variables, "PATH": f"{folder}/bin:{path}"}
    active.pop("PYTHONHOME", None)
    return {**active, "VIRTUAL_ENV": folder}


def _named(option: str, repository: Path) -> Environment:
    """The option may be the folder, or the interpreter in it; a relative one starts at the repository."""
    given = (repository / Path(option).expanduser()).absolute()
    folder = given.parent.parent if given.parent.name == "bin" and given.name.startswith("python") else given
    found = _at(folder, "option")
    if found is None:
        raise SettingsError(
            f"{option!r} is no Python environment: there is no {folder / 'bin' / 'python'}.",
            suggestion="Name the folder of a virtual environment, for instance `--env .venv`; "
            "`python -m venv .venv` makes one.",
        )
    return found


def _at(folder: Path, found_in: str) -> Environment | None:
    for python in ("python", "python3"):
        if (folder / "bin" / python).is_file():
            return Environment(folder.absolute(), python, found_in)
    return None


def _on_path(which: Callable[[str], str | None]) -> Environment | None:
    for python in ("python", "python3"):
        program = which(python)
        if program is not None and Path(program).parent.name == "bin":
            return Environment(Path(program).parent.parent, python, "PATH")
    return None

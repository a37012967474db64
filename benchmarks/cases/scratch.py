"""Scratch clones of public repositories at a commit, and environments to run their tests in."""

import os
import subprocess
from pathlib import Path

from benchmarks.cases.case import Case, CaseTests

# The clone asks for commits by id, which a repository refuses unless it is told to allow it.
_ANY_COMMIT = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "uploadpack.allowAnySHA1InWant",
    "GIT_CONFIG_VALUE_0": "true",
    "GIT_CONFIG_KEY_1": "safe.directory",
    "GIT_CONFIG_VALUE_1": "*",
}


def find_repository(folder: Path, case: Case) -> Path | None:
    """The case's repository under a folder, as owner/name, owner+name, name or one of these with `.git`."""
    owner, name = case.repository.split("/")
    for word in (f"{owner}/{name}", f"{owner}+{name}", name):
        for path in (folder / word, folder / f"{word}.git"):
            if (path / "HEAD").is_file() or (path / ".git").exists():
                return path
    return None


def has_commits(repository: Path, case: Case) -> bool:
    """True if both commits of the case are there."""
    kinds = (run_git(repository, "cat-file", "-t", sha, ok=(0, 128)) for sha in (case.parent, case.commit))
    return all(kind.strip() == "commit" for kind in kinds)


def scratch_clone(repository: Path, case: Case, folder: Path) -> Path:
    """A checkout of the parent commit, which also has the real commit's objects. One that is there is used again."""
    clone = folder / "repository"
    if not (clone / ".git").is_dir():
        clone.mkdir(parents=True)
        run_git(clone, "init", "-q", "-b", "main")
        source = str(repository.resolve())
        run_git(clone, "fetch", "-q", "--no-tags", "--depth=1", source, case.parent, case.commit)
    run_git(clone, "reset", "-q", "--hard", case.parent)
    for ref in run_git(clone, "for-each-ref", "--format=%(refname)", "refs/heads/rolecall").split():
        run_git(clone, "update-ref", "-d", ref)
    return clone


def run_git(repository: Path, *arguments: str, ok: tuple[int, ...] = (0,)) -> str:
    """What git answers. Raises SystemExit with its complaint."""
    env = {**os.environ, **_ANY_COMMIT, "LC_ALL": "C"}
    command = ["git", "-C", str(repository), *arguments]
    done = subprocess.run(command, capture_output=True, check=False, env=env)
    if done.returncode not in ok:
        raise SystemExit(f"git {' '.join(arguments[:3])}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode("utf-8", "surrogateescape")


def test_environment(tests: CaseTests, clone: Path, folder: Path) -> Path | str:
    """The virtual environment of the tests, made if it is not there; or why there is none."""
    ready = folder / "environment.ready"
    environment = folder / "environment"
    if ready.exists():
        return environment
    python = _python(tests.python)
    if python is None:
        return f"there is no Python {tests.python} on this machine"
    command = [str(python), "-m", "venv", str(environment)]
    steps = [command, *([str(environment / "bin/pip"), "install", "-q", *words] for words in tests.install)]
    for step in steps:
        done = subprocess.run(step, cwd=clone, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            return f"{' '.join(step[1:6])} … failed: {' '.join(last)}"
    ready.touch()
    return environment


def _python(version: str) -> Path | None:
    """An interpreter of the version: under pyenv, or on the path."""
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found = sorted(root.glob(f"versions/{version}.*/bin/python"))
    on_path = [Path(folder) / f"python{version}" for folder in os.environ.get("PATH", "").split(os.pathsep)]
    return next((path for path in (*found, *on_path) if path.is_file() and _answers(path)), None)


def _answers(python: Path) -> bool:
    done = subprocess.run([str(python), "-c", ""], capture_output=True, check=False)
    return done.returncode == 0


def environment_of(state: Path) -> dict[str, str]:
    """The environment of a Rolecall that shares nothing with the user's: its own state folder and name."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROLECALL_")}
    kept.pop("VIRTUAL_ENV", None)
    return {**kept, "XDG_STATE_HOME": str(state), "ROLECALL_ENVIRONMENT": "cases"}

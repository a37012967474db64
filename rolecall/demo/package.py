"""The package of the demonstration: its source distribution from the package registry, made into a git repository."""

import shutil
import tarfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from rolecall.processes.python_tools import pip
from schemas.errors import SettingsError
from workspace.git import git

# Fixed, so that the base commit, and with it every result, has the same id in every demonstration.
_DATES = {"GIT_AUTHOR_DATE": "1600000000 +0000", "GIT_COMMITTER_DATE": "1600000000 +0000"}
_IDENTITY = ("user.name=Rolecall Demo", "user.email=demo@rolecall.invalid")


@dataclass(frozen=True, slots=True)
class Package:
    """A release, pinned by the digest of its file, and what its tests need."""

    name: str
    version: str
    sha256: str
    test_requirements: tuple[str, ...]

    @property
    def file_name(self) -> str:
        """The source distribution's name."""
        return f"{self.name}-{self.version}.tar.gz"


# Pure Python, 13,000 lines and 1,666 tests that need no network; old enough to have things worth modernising.
ARROW = Package(
    name="arrow",
    version="0.17.0",
    sha256="ff08d10cda1d36c68657d6ad20d74fbea493d980f8b2d45344e00d6ed2bf6ed4",
    test_requirements=(
        "pytest>=8,<10",
        "pytest-mock>=3,<4",
        "python-dateutil>=2.8,<3",
        "dateparser>=1,<2",
        "simplejson>=3.17,<5",
        "pytz",
    ),
)


def fetched(package: Package, folder: Path) -> Path:
    """The source distribution, downloaded unless it is there. Raises SettingsError if it cannot be had."""
    file = folder / package.file_name
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        wanted = f"{package.name}=={package.version}"
        pip("download", "--no-deps", "--no-binary", package.name, "--dest", str(folder), wanted)
    found = sha256(file.read_bytes()).hexdigest() if file.exists() else "nothing"
    if found != package.sha256:
        file.unlink(missing_ok=True)
        raise SettingsError(
            f"{package.file_name} is not the file it should be (SHA-256 {found}).",
            suggestion="Try again; if it stays like this, your package index serves something else.",
        )
    return file


def made_repository(package: Package, archive: Path, folder: Path) -> Path:
    """A fresh git repository with one commit that holds the release; whatever stood there is removed."""
    unpacked = folder.with_name(f".{folder.name}.unpacking")
    for old in (folder, unpacked):
        shutil.rmtree(old, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(unpacked, filter="data")
    (unpacked / f"{package.name}-{package.version}").rename(folder)
    unpacked.rmdir()
    git(None, "init", "--quiet", "--initial-branch=main", str(folder))
    inside = (folder / ".git", f"--work-tree={folder}")
    git(*inside, "add", "--all", "--force", cwd=folder)
    message = f"{package.name} {package.version}, as released"
    git(*inside, "commit", "--quiet", "--message", message, settings=_IDENTITY, env=_DATES, cwd=folder)
    return folder

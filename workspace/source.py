"""The user's repository: where the base comes from, and where the branch is delivered.

We read objects and, at the very end, create one branch. The working tree, the index, the stash, the configuration,
the current branch and every other ref stay byte for byte as they are, and no hook or monitor of theirs is run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from schemas.errors import ContractError, WorkspaceError
from workspace.git import GitError, git
from workspace.hub import Hub
from workspace.hub_store import ObjectFormat
from workspace.objects import ObjectReader
from workspace.remote import FETCH, FETCH_SETTINGS, locked, patiently, shown
from workspace.writing import AUTHOR

# More are counted, not named.
_MOST_LEFT_OUT = 200


@dataclass(frozen=True, slots=True)
class Base:
    """The commit that a task starts from, and the name under which the user asked for it."""

    commit: str
    ref: str


@dataclass(frozen=True, slots=True)
class Source:
    """A repository of the user. `git_dir` is the common one, so that linked worktrees are one repository.

    `work_tree` is None for a bare repository.
    """

    path: Path
    git_dir: Path
    worktree_git_dir: Path
    work_tree: Path | None
    object_format: ObjectFormat

    def resolve(self, ref: str = "HEAD") -> Base:
        """The commit that a ref, tag or abbreviated id names. Raises ContractError."""
        ask = ("rev-parse", "--verify", "--quiet", "--end-of-options")
        try:
            commit = git(self.worktree_git_dir, *ask, f"{ref}^{{commit}}").decode().strip()
        except GitError as error:
            if ref == "HEAD":
                raise ContractError(
                    f"{self.path} has no commit yet.",
                    suggestion="Make the first one: `git add`, `git commit`.",
                ) from error
            raise ContractError(
                f"{self.path} has no commit {ref!r}.",
                suggestion="`git branch -a` and `git tag` list the names it has.",
            ) from error
        if ref != "HEAD":
            return Base(commit, ref)
        branch = (
            git(self.worktree_git_dir, "symbolic-ref", "--quiet", "--short", "HEAD", ok=(0, 1))
            .decode()
            .strip()
        )
        return Base(commit, branch or commit[:12])

    def branch_tip(self, name: str) -> str | None:
        """The commit that a branch of this name stands at; None if there is none."""
        return self._at(f"refs/heads/{name}")

    def commits_between(self, old: str, new: str) -> int:
        """How many commits `new` is ahead of `old`; 0 if it does not build on it."""
        try:
            git(self.git_dir, "merge-base", "--is-ancestor", old, new)
            return int(git(self.git_dir, "rev-list", "--count", f"{old}..{new}"))
        except GitError:
            return 0

    def left_out(self) -> tuple[str, ...]:
        """Paths whose changes are not in HEAD (edited, staged, untracked), and so not in the task; sorted.

        Asked with the user's own settings, as `git status` shows it to them; the index is not refreshed on disk.
        """
        if self.work_tree is None:
            return ()
        said = git(
            self.worktree_git_dir, f"--work-tree={self.work_tree}", "status", "--porcelain=v1", "-z", "--no-renames",
            "--untracked-files=normal", "--ignore-submodules=dirty", user_config=True, cwd=self.work_tree,
        )  # fmt: skip
        rows = [row for row in said.decode("utf-8", "surrogateescape").split("\0") if row]
        paths = sorted(row[3:] for row in rows)
        more = len(paths) - _MOST_LEFT_OUT
        return (*paths[:_MOST_LEFT_OUT], f"... and {more} more") if more > 0 else tuple(paths)

    def check_fits(self, hub: Hub) -> None:
        """Raises ContractError if the hub's object format is another than this repository's."""
        if hub.object_format != self.object_format:
            raise ContractError(
                f"{self.path} uses {self.object_format} and the hub {hub.object_format}.",
                suggestion="`rolecall run --environment NAME` with a new name makes an environment for it.",
            )

    def send_to_hub(self, hub: Hub, commit: str, ref: str) -> None:
        """Put a commit with its tree into the hub, under a ref. Raises ContractError, WorkspaceError.

        A hub by path gets no history: nobody needs it there, and it is most of the bytes. Strangers' servers take
        only whole histories.
        """
        self.check_fits(hub)
        if hub.is_remote:
            self._push(hub.location, commit, ref)
            return
        with locked(hub.repository):
            if not hub.has(commit):
                git(hub.repository, *FETCH, "--depth=1", str(self.git_dir), commit, settings=FETCH_SETTINGS)
        hub.publish(ref, commit)

    # ---- delivery ------------------------------------------------------------------------------------------------

    def check_branch(self, branch: str) -> None:
        """Raises ContractError unless a branch of this name can be created here."""
        ref = f"refs/heads/{branch}"
        try:
            git(None, "check-ref-format", ref)
        except GitError as error:
            raise ContractError(
                f"{branch!r} cannot be a branch's name.", suggestion="Use letters, digits, `-` and `/`."
            ) from error
        listed = git(self.git_dir, "for-each-ref", "--format=%(refname)", "refs/heads/").decode(
            "utf-8", "replace"
        )
        for other in listed.splitlines():
            if other == ref or other.startswith(f"{ref}/") or ref.startswith(f"{other}/"):
                raise ContractError(
                    f"The branch {other.removeprefix('refs/heads/')!r} is in the way of {branch!r}.",
                    suggestion="Choose another name, or delete it if it is an old delivery.",
                )

    def deliver(self, hub: Hub, commit: str, branch: str) -> bool:
        """Create the branch at a commit of the hub. False if it is there already, at that commit.

        Raises ContractError if the name is taken, WorkspaceError if git refuses the objects.
        """
        ref = f"refs/heads/{branch}"
        if self._at(ref) == commit:
            return False
        self.check_branch(branch)
        self._require_base(hub, commit)
        try:
            patiently(self.git_dir, *FETCH, hub.location, commit, settings=("fetch.fsckObjects=true",))
            git(self.git_dir, "update-ref", "--no-deref", ref, commit, "0" * len(commit))
        except GitError as error:
            # Another delivery of the same task may have been quicker.
            if self._at(ref) == commit:
                return False
            raise WorkspaceError(
                f"The branch {branch!r} could not be created in {self.path}: {error.stderr.strip()[-300:]}",
                suggestion="The result stays in the hub; `rolecall deliver` tries again.",
            ) from error
        return True

    def _require_base(self, hub: Hub, commit: str) -> None:
        """What the task started from must be here: git would else make this clone a shallow one."""
        shallow = hub.repository / "shallow"
        cut = set(shallow.read_text("ascii").split()) if shallow.exists() and not hub.is_remote else set()
        here = ObjectReader(self.git_dir)
        try:
            while here.kind(commit) is None:
                hub.ensure(commit)
                found = hub.objects.commit(commit)
                is_ours = found.header(b"author").startswith(AUTHOR.encode())
                if commit in cut or not is_ours or not found.parents:
                    raise WorkspaceError(
                        f"{self.path} no longer has the commit {commit[:12]} that the task started from.",
                        suggestion="Fetch or restore it, then `rolecall deliver` again.",
                    )
                commit = found.parents[0]
        finally:
            here.close()

    def _push(self, url: str, commit: str, ref: str) -> None:
        try:
            patiently(self.git_dir, "push", "--quiet", "--no-verify", "--force", url, f"{commit}:{ref}")
        except GitError as error:
            # receive.shallowUpdate would take it, but makes git 2.39 crash when a shallow clone deletes a ref.
            if "shallow update not allowed" in error.stderr:
                raise ContractError(
                    f"{self.path} is a shallow clone, and the hub at {shown(url)} takes whole histories only.",
                    suggestion="`git fetch --unshallow` completes the clone.",
                ) from error
            raise

    def _at(self, ref: str) -> str | None:
        said = git(self.git_dir, "rev-parse", "--verify", "--quiet", "--end-of-options", ref, ok=(0, 1, 128))
        return said.decode().strip() or None


def open_source(path: Path) -> Source:
    """The repository that a path lies in. Raises ContractError for what we cannot work on, with what to do."""
    path = path.absolute()
    if not path.is_dir():
        raise ContractError(f"There is no folder {path}.")
    try:
        said = git(
            None, "-C", str(path), "rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir",
            "--show-object-format", "--is-inside-work-tree",
        )  # fmt: skip
    except GitError as error:
        raise ContractError(
            f"{path} is not in a git repository.",
            suggestion="`git init` there, or give the folder with --repo.",
        ) from error
    lines = said.decode("utf-8", "surrogateescape").split("\n")
    if len(lines) != 5:
        raise ContractError(
            f"{str(path)!r} has a line break in its name.", suggestion="Move it or link to it."
        )
    git_dir, common_dir, object_format, is_inside, _ = lines
    work_tree = None
    if is_inside == "true":
        top = git(None, "-C", str(path), "rev-parse", "--path-format=absolute", "--show-toplevel")
        work_tree = Path(top.decode("utf-8", "surrogateescape").removesuffix("\n"))
    source = Source(path, Path(common_dir), Path(git_dir), work_tree, cast(ObjectFormat, object_format))
    _refuse_partial(source)
    source.resolve()
    return source


def _refuse_partial(source: Source) -> None:
    said = git(
        source.git_dir,
        "config",
        "--get-regexp",
        r"^(extensions\.partialclone|remote\..*\.promisor)$",
        ok=(0, 1),
    )
    if said.strip():
        raise ContractError(
            f"{source.path} is a partial clone: files would be fetched one by one from its server.",
            suggestion="Use a full clone (`git clone` without --filter).",
        )

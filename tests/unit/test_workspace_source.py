"""The user's repository: what is refused, what works, and that nothing of it changes but one new branch."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.errors import ContractError, WorkspaceError
from tests.unit.workspace_repos import change, files_at, new_repository, run_git, save
from workspace.hub import Hub
from workspace.refs import base_ref
from workspace.source import Base, open_source

REF = base_ref("t")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub.create(tmp_path / "hub.git") as hub:
        yield hub


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repo", {"a.py": "1\n", "src/b.py": "2\n"})


def refactor(hub: Hub, repository: Path, ref: str = "HEAD") -> str:
    """What a task does between submission and delivery: base into the hub, one commit on it."""
    source = open_source(repository)
    base = source.resolve(ref).commit
    source.send_to_hub(hub, base, REF)
    return change(hub, base, a_py="refactored\n")


def snapshot(folder: Path) -> dict[str, object]:
    """Every file below a folder but git's object store: bytes, mode and (for the index) when it was written."""
    return {
        str(path.relative_to(folder)): (
            path.readlink() if path.is_symlink() else path.read_bytes(),
            path.lstat().st_mode,
        )
        for path in sorted(folder.rglob("*"))
        if not path.is_dir() and "objects" not in path.parts
    }


def test_a_branch_is_delivered_on_top_of_the_base(hub: Hub, repository: Path) -> None:
    base = run_git(repository, "rev-parse", "HEAD")
    result = refactor(hub, repository)

    assert open_source(repository).deliver(hub, result, "rolecall/x-1") is True

    assert run_git(repository, "rev-parse", "rolecall/x-1", "rolecall/x-1^").split() == [result, base]
    assert run_git(repository, "show", "rolecall/x-1:a.py") == "refactored"
    run_git(repository, "fsck", "--strict")


def test_a_dirty_checkout_with_stash_hooks_and_staged_work_is_left_byte_for_byte(
    hub: Hub, repository: Path
) -> None:
    (repository / "a.py").write_text("stashed\n")
    run_git(repository, "stash")
    (repository / "a.py").write_text("staged\n")
    run_git(repository, "add", "a.py")
    (repository / "a.py").write_text("edited\n")
    (repository / "src/b.py").unlink()
    (repository / "untracked.txt").write_text("mine\n")
    run_git(repository, "tag", "v1")
    for hook in (
        "post-checkout",
        "pre-commit",
        "commit-msg",
        "pre-push",
        "reference-transaction",
        "post-update",
    ):
        script = repository / ".git/hooks" / hook
        script.write_text(f"#!/bin/sh\ntouch {repository}/HOOKED-{hook}\nexit 1\n")
        script.chmod(0o755)
    before = snapshot(repository)

    source = open_source(repository)
    left_out = source.left_out()
    result = refactor(hub, repository)
    source.deliver(hub, result, "rolecall/x-1")

    after = snapshot(repository)
    assert after.pop(".git/refs/heads/rolecall/x-1") == (f"{result}\n".encode(), 0o100644)
    assert after == before
    assert left_out == ("a.py", "src/b.py", "untracked.txt")
    assert files_at(hub, result)["src/b.py"] == b"2\n"


def test_planted_monitors_and_filters_do_not_run_when_a_base_is_taken(hub: Hub, repository: Path) -> None:
    mark = repository.parent / "RAN"
    save(repository, {".gitattributes": "*.py filter=evil\n"})
    for key in ("core.fsmonitor", "core.sshCommand", "core.alternateRefsCommand", "filter.evil.smudge"):
        run_git(repository, "config", key, f"touch {mark}")
    run_git(repository, "config", "uploadpack.packObjectsHook", f"touch {mark}; exec")

    result = refactor(hub, repository)
    open_source(repository).deliver(hub, result, "rolecall/x")

    assert not mark.exists()


def test_delivering_again_is_no_work_and_no_error(hub: Hub, repository: Path) -> None:
    result = refactor(hub, repository)
    source = open_source(repository)

    assert [source.deliver(hub, result, "rolecall/x"), source.deliver(hub, result, "rolecall/x")] == [
        True,
        False,
    ]


@pytest.mark.parametrize("taken", ["rolecall", "rolecall/x", "rolecall/x/deeper"])
def test_a_branch_that_is_in_the_way_is_named_and_kept(hub: Hub, repository: Path, taken: str) -> None:
    run_git(repository, "branch", taken)
    before = run_git(repository, "rev-parse", taken)
    source = open_source(repository)

    with pytest.raises(ContractError, match=f"'{taken}' is in the way of 'rolecall/x'"):
        source.check_branch("rolecall/x")
    with pytest.raises(ContractError, match="in the way"):
        source.deliver(hub, refactor(hub, repository), "rolecall/x")

    assert run_git(repository, "rev-parse", taken) == before


@pytest.mark.parametrize("name", ["", "a..b", "a b", "x.lock", "a~1", "/x", "x/", "-x?", "@{"])
def test_a_name_that_git_does_not_take_is_refused_at_submission(repository: Path, name: str) -> None:
    with pytest.raises(ContractError, match="cannot be a branch's name"):
        open_source(repository).check_branch(name)


def test_a_folder_without_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"not in a git repository.*git init"):
        open_source(tmp_path)
    with pytest.raises(ContractError, match="no folder"):
        open_source(tmp_path / "nothing")


def test_a_repository_without_commit_is_refused(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "--quiet", "empty")

    with pytest.raises(ContractError, match=r"no commit yet.*git commit"):
        open_source(tmp_path / "empty")


def test_a_partial_clone_is_refused(repository: Path, tmp_path: Path) -> None:
    run_git(repository, "config", "uploadpack.allowFilter", "true")
    run_git(tmp_path, "clone", "--quiet", "--filter=blob:none", repository.as_uri(), "partial")

    with pytest.raises(ContractError, match=r"partial clone.*without --filter"):
        open_source(tmp_path / "partial")


def test_a_ref_that_is_not_there_is_refused(repository: Path) -> None:
    source = open_source(repository)

    for ref in ("nothing", "--help", "HEAD~9", "1" * 40):
        with pytest.raises(ContractError, match="has no commit"):
            source.resolve(ref)


def test_base_refs_are_named_as_the_user_says_them(repository: Path) -> None:
    first = run_git(repository, "rev-parse", "HEAD")
    run_git(repository, "tag", "-a", "v1", "-m", "x")
    second = save(repository, {"c.py": "3\n"})
    source = open_source(repository)

    asked = [source.resolve(), source.resolve("v1"), source.resolve("HEAD~1"), source.resolve(first[:10])]

    assert [base.commit for base in asked] == [second, first, first, first]
    assert asked[0] == Base(second, "main")
    assert asked[1].ref == "v1"


def test_a_bare_repository_works(hub: Hub, repository: Path, tmp_path: Path) -> None:
    run_git(tmp_path, "clone", "--quiet", "--bare", str(repository), "bare.git")
    bare = tmp_path / "bare.git"

    result = refactor(hub, bare)

    assert open_source(bare).left_out() == ()
    assert open_source(bare).deliver(hub, result, "rolecall/x")
    assert run_git(bare, "rev-parse", "rolecall/x") == result


def test_a_shallow_clone_works_and_stays_as_shallow_as_it_was(
    hub: Hub, repository: Path, tmp_path: Path
) -> None:
    save(repository, {"c.py": "3\n"})
    run_git(tmp_path, "clone", "--quiet", "--depth=1", repository.as_uri(), "shallow")
    shallow = tmp_path / "shallow"
    before = (shallow / ".git/shallow").read_bytes()

    result = refactor(hub, shallow)

    assert open_source(shallow).deliver(hub, result, "rolecall/x")
    assert (shallow / ".git/shallow").read_bytes() == before
    assert run_git(shallow, "rev-list", "--count", "rolecall/x") == "2"


def test_a_full_clone_does_not_become_shallow(hub: Hub, repository: Path) -> None:
    save(repository, {"c.py": "3\n"})
    result = refactor(hub, repository)

    open_source(repository).deliver(hub, result, "rolecall/x")

    assert not (repository / ".git/shallow").exists()
    assert run_git(repository, "rev-list", "--count", "rolecall/x") == "3"


def test_a_linked_worktree_works_with_its_own_head(hub: Hub, repository: Path, tmp_path: Path) -> None:
    run_git(repository, "worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "linked"))
    on_topic = save(tmp_path / "linked", {"d.py": "4\n"})
    (tmp_path / "linked/a.py").write_text("edited\n")
    source = open_source(tmp_path / "linked" / "src")

    result = refactor(hub, tmp_path / "linked")
    source.deliver(hub, result, "rolecall/x")

    assert source.resolve() == Base(on_topic, "topic")
    assert source.left_out() == ("a.py",)
    assert run_git(repository, "rev-parse", "rolecall/x^") == on_topic


def test_a_submodule_is_carried_as_the_commit_it_names(hub: Hub, repository: Path, tmp_path: Path) -> None:
    new_repository(tmp_path / "library", {"l.py": "l\n"})
    run_git(
        repository,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(tmp_path / "library"),
        "lib",
    )
    save(repository, {})
    pinned = run_git(tmp_path / "library", "rev-parse", "HEAD")
    run_git(repository, "submodule", "--quiet", "deinit", "--force", "lib")

    result = refactor(hub, repository)
    open_source(repository).deliver(hub, result, "rolecall/x")

    assert run_git(repository, "ls-tree", "rolecall/x", "lib").split()[:3] == ["160000", "commit", pinned]
    assert hub.list_tree(result)["lib"].is_submodule


def test_a_sha256_repository_works_with_its_own_hub_and_is_refused_by_another(
    hub: Hub, tmp_path: Path
) -> None:
    repository = new_repository(tmp_path / "sha256", {"a.py": "1\n"}, object_format="sha256")

    with pytest.raises(ContractError, match="uses sha256 and the hub sha1"):
        refactor(hub, repository)
    with Hub.create(tmp_path / "hub256.git", object_format="sha256") as own:
        result = refactor(own, repository)
        assert open_source(repository).deliver(own, result, "rolecall/x")

    assert run_git(repository, "rev-parse", "rolecall/x") == result


def test_a_hub_that_knows_an_older_base_takes_the_next_one(hub: Hub, repository: Path) -> None:
    first = refactor(hub, repository)
    save(repository, {"c.py": "3\n"})
    second = refactor(hub, repository)
    source = open_source(repository)

    source.deliver(hub, first, "rolecall/one")
    source.deliver(hub, second, "rolecall/two")
    run_git(repository, "checkout", "--quiet", "rolecall/two")
    third = refactor(hub, repository, "rolecall/two~0")

    assert run_git(repository, "rev-list", "--count", "rolecall/two") == "3"
    assert third == second


def test_a_base_that_was_thrown_away_meanwhile_is_a_clear_error(hub: Hub, repository: Path) -> None:
    save(repository, {"c.py": "3\n"})
    result = refactor(hub, repository)
    run_git(repository, "reset", "--quiet", "--hard", "HEAD~1")
    run_git(repository, "-c", "gc.reflogExpire=now", "reflog", "expire", "--expire=now", "--all")
    run_git(repository, "-c", "gc.pruneExpire=now", "gc", "--quiet", "--prune=now")

    with pytest.raises(WorkspaceError, match=r"no longer has the commit.*rolecall deliver"):
        open_source(repository).deliver(hub, result, "rolecall/x")

    assert run_git(repository, "branch", "--list", "rolecall/*") == ""
    assert not (repository / ".git/shallow").exists()


def test_a_hub_by_url_takes_the_base_and_gives_the_branch(repository: Path, tmp_path: Path) -> None:
    save(repository, {"c.py": "3\n"})
    with (
        Hub.create(tmp_path / "server.git") as server,
        Hub.open(server.repository.as_uri(), cache_dir=tmp_path / "cache") as hub,
    ):
        result = refactor(hub, repository)
        hub.publish("refs/rolecall/t/head", result)

        assert open_source(repository).deliver(hub, result, "rolecall/x")
        assert set(server.refs("refs/rolecall/t/")) == {REF, "refs/rolecall/t/head"}

    assert run_git(repository, "rev-list", "--count", "rolecall/x") == "3"


def test_a_shallow_clone_is_told_to_complete_itself_for_a_hub_by_url(
    repository: Path, tmp_path: Path
) -> None:
    save(repository, {"c.py": "3\n"})
    run_git(tmp_path, "clone", "--quiet", "--depth=1", repository.as_uri(), "shallow")
    with (
        Hub.create(tmp_path / "server.git") as server,
        Hub.open(server.repository.as_uri(), cache_dir=tmp_path / "cache") as hub,
    ):
        with pytest.raises(ContractError, match=r"shallow clone.*--unshallow"):
            refactor(hub, tmp_path / "shallow")

        run_git(tmp_path / "shallow", "fetch", "--quiet", "--unshallow")
        result = refactor(hub, tmp_path / "shallow")
        hub.publish("refs/rolecall/t/head", result)
        assert open_source(tmp_path / "shallow").deliver(hub, result, "rolecall/x")


def test_ignored_files_of_the_users_own_settings_are_not_named(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = repository.parent / "home"
    home.mkdir()
    (home / "ignored").write_text("*.mine\n")
    (home / ".gitconfig").write_text(f"[core]\n\texcludesFile = {home}/ignored\n")
    monkeypatch.setenv("HOME", str(home))
    (repository / "x.mine").write_text("")
    (repository / "y.theirs").write_text("")

    assert open_source(repository).left_out() == ("y.theirs",)

"""A hub by URL: a cache that fetches what is asked for, and results that arrive under their refs."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from schemas.errors import SettingsError, WorkspaceError
from tests.unit.workspace_repos import change, files_at, root_commit, run_git
from workspace.git import GitError
from workspace.hub import Composed, Hub
from workspace.hub_store import is_url
from workspace.refs import attempt_ref, base_ref, blob_ref
from workspace.remote import PAUSES_S, Remote


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Hub]:
    with Hub.create(tmp_path / "server.git") as hub:
        yield hub


@pytest.fixture
def base(server: Hub) -> str:
    base = root_commit(server, {f"f{i}.py": b"x\n" for i in range(150)} | {"a.py": b"1"})
    server.publish(base_ref("t"), base)
    return base


@pytest.fixture
def worker(server: Hub, base: str, tmp_path: Path) -> Iterator[Hub]:
    with Hub.open(server.repository.as_uri(), cache_dir=tmp_path / "cache") as hub:
        yield hub


def test_a_worker_fetches_the_base_it_needs_and_its_result_arrives_under_its_ref(
    server: Hub, worker: Hub, base: str
) -> None:
    ref = attempt_ref("t", "s", 1)

    result = change(worker, base, a_py="2")
    worker.publish(ref, result)

    assert server.refs("refs/rolecall/t/") == {base_ref("t"): base, ref: result}
    assert files_at(server, result)["a.py"] == b"2"
    assert [c.path for c in server.changes(base, result)] == ["a.py"]


def test_work_goes_on_across_machines_over_many_heads(
    server: Hub, worker: Hub, base: str, tmp_path: Path
) -> None:
    head = base
    with Hub.open(server.repository.as_uri(), cache_dir=tmp_path / "other") as other:
        for i in range(3):
            for who, name in ((worker, "w"), (other, "o")):
                result = change(who, head, **{f"{name}_py": str(i)})
                who.publish(attempt_ref("t", f"{name}{i}", 1), result)
                composed = server.compose(head, [(head, result)], message="m")
                assert isinstance(composed, Composed)
                head = composed.commit
                server.publish("refs/rolecall/t/head", head)

        assert files_at(other, head) == files_at(server, head)

    assert run_git(server.repository, "rev-list", "--count", head) == "8"
    run_git(server.repository, "fsck", "--strict", head)


def test_a_commit_without_a_ref_is_found_by_its_id(server: Hub, worker: Hub, base: str) -> None:
    unreferenced = change(server, base, a_py="3")

    assert files_at(worker, unreferenced)["a.py"] == b"3"


def test_a_server_that_only_hands_out_refs_is_asked_for_the_ref(server: Hub, worker: Hub, base: str) -> None:
    run_git(server.repository, "config", "uploadpack.allowAnySHA1InWant", "false")
    run_git(worker.repository, "config", "protocol.version", "0")
    result = change(server, base, a_py="3")
    server.publish(attempt_ref("t", "s", 1), result)

    assert files_at(worker, result)["a.py"] == b"3"


def test_a_spilled_blob_reaches_the_server_and_other_machines(
    server: Hub, worker: Hub, base: str, tmp_path: Path
) -> None:
    blob = worker.write_blob(b"large" * 1000, ref=blob_ref("t", "one"))

    with Hub.open(server.repository.as_uri(), cache_dir=tmp_path / "other") as other:
        assert server.read(blob) == other.read(blob) == b"large" * 1000


def test_what_the_server_does_not_hold_is_a_clear_error(worker: Hub) -> None:
    with pytest.raises(WorkspaceError, match="does not hold 1111"):
        worker.list_tree("1" * 40)


def test_a_ref_at_a_url_moves_only_from_where_it_stands(server: Hub, worker: Hub, base: str) -> None:
    result = change(worker, base, a_py="2")
    ref = "refs/rolecall/t/head"

    steps = [
        worker.set_ref(ref, base, None),
        worker.set_ref(ref, result, result),
        worker.set_ref(ref, result, base),
        worker.set_ref(ref, None, base),
        worker.set_ref(ref, None, result),
    ]

    assert steps == [True, False, True, False, True]
    assert server.refs(ref) == {}


def test_slots_of_one_machine_share_a_cache_and_may_need_the_same_base_at_once(
    server: Hub, base: str, tmp_path: Path
) -> None:
    def work(slot: int) -> str:
        with Hub.open(server.repository.as_uri(), cache_dir=tmp_path / "shared") as hub:
            result = change(hub, base, a_py=f"slot {slot}")
            hub.publish(attempt_ref("t", f"s{slot}", 1), result)
            return result

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(work, range(6)))

    assert server.refs("refs/rolecall/t/s") == {
        attempt_ref("t", f"s{slot}", 1): results[slot] for slot in range(6)
    }


def test_a_push_is_tried_again_until_the_server_takes_it(server: Hub, worker: Hub, base: str) -> None:
    result = change(worker, base, a_py="2")
    run_git(server.repository, "config", "core.filesRefLockTimeout", "0")
    lock = server.repository / "refs" / "rolecall" / "t" / "s" / "1.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    pauses: list[float] = []

    def wait(pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == 2:
            lock.unlink()

    Remote(worker.location, worker.repository, sleep=wait).push("refs/rolecall/t/s/1", result)

    assert server.refs("refs/rolecall/t/s") == {"refs/rolecall/t/s/1": result}
    assert pauses == list(PAUSES_S[:2])


def test_a_push_to_a_server_that_stays_away_ends_after_the_last_pause(worker: Hub, base: str) -> None:
    result = change(worker, base, a_py="2")
    pauses: list[float] = []

    with pytest.raises(GitError):
        Remote("git://127.0.0.1:1/hub", worker.repository, sleep=pauses.append).push(
            "refs/rolecall/t/s/1", result
        )

    assert pauses == list(PAUSES_S)


def test_a_url_that_cannot_be_read_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        Hub.open((tmp_path / "nowhere.git").as_uri(), cache_dir=tmp_path / "cache")


def test_a_password_in_a_url_is_never_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        Hub.open("nothing://user:s3cret@host/hub.git", cache_dir=tmp_path / "cache")

    assert "s3cret" not in str(refused.value)
    assert "user:***@host" in str(refused.value)


def test_a_url_that_would_run_a_command_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        Hub.open(f"ext::sh -c 'touch {tmp_path}/RAN'", cache_dir=tmp_path / "cache")

    assert not (tmp_path / "RAN").exists()


def test_a_sha256_hub_is_recognised_by_its_refs(tmp_path: Path) -> None:
    with Hub.create(tmp_path / "server.git", object_format="sha256") as server:
        base = root_commit(server, {"a.py": b"1"})
        server.publish(base_ref("t"), base)
        with Hub.open(server.repository.as_uri(), cache_dir=tmp_path / "cache") as worker:
            result = change(worker, base, a_py="2")
            worker.publish(attempt_ref("t", "s", 1), result)

        assert files_at(server, result) == {"a.py": b"2"}


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("https://host/hub.git", True),
        ("file:///srv/hub.git", True),
        ("git@host:hub.git", True),
        ("/srv/hub.git", False),
        ("relative/hub.git", False),
        ("C:/hub.git", False),
        (Path("/srv/odd:name"), False),
    ],
)
def test_a_url_is_told_from_a_path(location: str | Path, expected: bool) -> None:
    assert is_url(location) is expected

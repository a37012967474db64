"""A role of one's own: the contract, the handler's files and results, and what comes of one action of it."""

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rolecall import Contract, Files, Result, Role
from rolecall.plugin import spec_of
from rolecall.plugin_work import handle, is_async, load_role, perform, perform_async
from schemas.contracts import ContractRegistry
from schemas.errors import ContractError, SettingsError
from schemas.words import Outcome, Shardable
from tests.unit.role_work import action_for, context_in, hub_in
from tests.unit.workspace_repos import root_commit
from workspace.hub import Hub
from workspace.view import DictView

EXAMPLE = Path(__file__).parents[2] / "examples" / "licence_headers"
FILES = {"src/a.py": b"a = 1\r\n", "src/b.txt": b"b\n", "docs/c.txt": b"c\n"}


class Shout(Role):
    """Text files in capitals."""

    contract = Contract(
        {"name": "text.shout", "input": {"type": "object", "properties": {"mark": {"type": "string"}}}}
    )

    def handle(self, input: dict[str, str], files: Files) -> Result:
        result = Result()
        for path, data in files.items("**/*.txt"):
            result.change(path, data.upper() + input.get("mark", "").encode())
        return result


class Slow(Shout):
    """The same, waiting."""

    async def handle(self, input: dict[str, str], files: Files) -> Result:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().handle(input, files)


class Broken(Shout):
    """Raises what nobody expects."""

    def handle(self, input: dict[str, str], files: Files) -> Result:
        raise ZeroDivisionError("by nothing")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with hub_in(tmp_path) as made:
        yield made


def test_a_contract_needs_a_name_and_an_input_and_the_rest_has_defaults() -> None:
    document = Shout.contract.document

    assert (document.ref, document.pool, document.changes) == ("text.shout@1", "text-shout", "tree")
    assert (document.pure, document.shardable) == (True, Shardable.FILE)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"input": {}}, "name"),
        ({"name": "Shout", "input": {}}, "name"),
        ({"name": "a.b", "input": {}, "puer": True}, "puer"),
        ({"name": "a.b", "input": {}, "changes": "nothing"}, "changes the tree"),
    ],
)
def test_a_wrong_contract_is_refused_with_its_fault(document: dict[str, object], said: str) -> None:
    with pytest.raises(ContractError, match=said):
        Contract(document)


def test_a_built_in_name_is_taken() -> None:
    contract = Contract({"name": "lint.fix", "input": {"type": "object"}})

    with pytest.raises(ContractError):
        ContractRegistry.builtin().add(contract.document)


def test_a_handler_sees_bytes_and_only_what_its_globs_match() -> None:
    files = Files(DictView(FILES))

    assert files.paths() == ("docs/c.txt", "src/a.py", "src/b.txt")
    assert dict(files.items("src/**")) == {"src/a.py": b"a = 1\r\n", "src/b.txt": b"b\n"}
    assert files.read("docs/c.txt") == b"c\n"


def test_an_action_becomes_a_commit_with_an_honest_handoff(hub: Hub) -> None:
    base = root_commit(hub, FILES)

    done = perform(Shout(), action_for("text.shout@1", {"mark": "!"}, base), hub)

    assert (done.outcome, done.error) == (Outcome.DONE, None)
    assert done.result is not None
    assert [one.path for one in done.files] == ["docs/c.txt", "src/b.txt"]
    assert hub.read(hub.list_tree(done.result)["src/b.txt"].oid) == b"B\n!"
    assert (done.output["sites"], done.output["files_seen"]) == (2, 3)
    assert done.engines == {"text.shout": "1"}


def test_the_same_action_gives_the_same_commit_and_another_version_another(hub: Hub) -> None:
    base = root_commit(hub, FILES)
    action = action_for("text.shout@1", {}, base)
    newer = Shout()
    newer.version = "2"

    results = [perform(role, action, hub).result for role in (Shout(), Shout(), newer)]

    assert results[0] == results[1] != results[2]


def test_a_shard_keeps_the_handler_within_its_reach(hub: Hub) -> None:
    base = root_commit(hub, FILES)

    done = perform(Shout(), action_for("text.shout@1", {}, base, include=("src/**",)), hub)

    assert [one.path for one in done.files] == ["src/b.txt"]


def test_nothing_to_change_is_said_as_such(hub: Hub) -> None:
    base = root_commit(hub, {"src/a.py": b"a = 1\n"})

    done = perform(Shout(), action_for("text.shout@1", {}, base), hub)

    assert (done.outcome, done.result) == (Outcome.NO_CHANGE, None)


async def test_an_async_handler_does_the_same(hub: Hub) -> None:
    base = root_commit(hub, FILES)
    action = action_for("text.shout@1", {}, base)

    done = await perform_async(Slow(), action, hub)

    assert (is_async(Slow()), is_async(Shout())) == (True, False)
    assert done.result == perform(Shout(), action, hub).result


def test_what_a_handler_raises_fails_the_attempt_and_names_its_line(hub: Hub) -> None:
    base = root_commit(hub, FILES)

    done = perform(Broken(), action_for("text.shout@1", {}, base), hub)

    assert (done.outcome, done.result) == (Outcome.FAILED, None)
    assert done.error is not None
    assert done.error.code == "ZeroDivisionError"
    assert "test_authoring.py:" in done.error.message


def test_another_contracts_action_and_wrong_input_are_refused(hub: Hub) -> None:
    base = root_commit(hub, FILES)

    other = perform(Shout(), action_for("text.whisper@1", {}, base), hub)
    wrong = perform(Shout(), action_for("text.shout@1", {"mark": ["a"]}, base), hub)

    assert [other.outcome, wrong.outcome] == [Outcome.FAILED, Outcome.FAILED]


def test_a_change_out_of_reach_is_refused(hub: Hub) -> None:
    class Outside(Shout):
        """Writes where it must not."""

        def handle(self, input: dict[str, str], files: Files) -> Result:
            result = Result()
            result.change("docs/c.txt", b"mine\n")
            return result

    base = root_commit(hub, FILES)

    done = perform(Outside(), action_for("text.shout@1", {}, base, include=("src/**",)), hub)

    assert (done.outcome, done.error and done.error.code) == (Outcome.FAILED, "OutOfReachError")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("licence_headers", "is not MODULE:CLASS"),
        ("no_such_module:X", "cannot be imported"),
        ("licence_headers:Licence", "its roles are LicenceHeaders"),
        ("licence_headers:MARKS", "is no role"),
    ],
)
def test_a_place_that_holds_no_role_is_told_with_what_is_there(
    place: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])

    with pytest.raises(SettingsError, match=said):
        load_role(place, EXAMPLE)


def test_the_example_is_short_imports_only_rolecall_and_does_what_its_contract_shows(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    source = (EXAMPLE / "licence_headers.py").read_text()
    role = load_role("licence_headers:LicenceHeaders", EXAMPLE)
    example = json.loads((EXAMPLE / "licence.header.v1.json").read_text())["examples"][0]
    base = root_commit(hub, {"a.py": example["before"].encode(), "b.py": b"# Copyright Ada\n"})
    context = context_in(tmp_path, hub)
    options = {"role": "licence_headers:LicenceHeaders", "folder": str(EXAMPLE)}

    action = action_for("licence.header@1", example["input"], base)
    done = handle(action, replace(context, options=options))

    assert len(source.splitlines()) < 30
    assert {line.split()[1] for line in source.splitlines() if line.startswith(("import", "from"))} == {
        "re",
        "rolecall",
    }
    assert spec_of(role, 2).pool == "licence-header"
    assert done.result is not None
    assert hub.read(hub.list_tree(done.result)["a.py"].oid) == example["after"].encode()
    assert [one.path for one in done.residue] == ["b.py"]

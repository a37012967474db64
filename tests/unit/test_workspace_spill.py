"""Large fields of a handoff go through the hub and come back the same, or not at all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import ContractError, WorkspaceError
from schemas.handoff import FileChange, Handoff, Residue, Spill
from schemas.words import ChangeKind, Outcome
from workspace.hub import Hub
from workspace.spill import spill, unspill

ODD = b"latin-\xe4\n.py".decode("utf-8", "surrogateescape")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub.create(tmp_path / "hub.git") as hub:
        yield hub


def handoff(**fields: Any) -> Handoff:
    return Handoff(action_id="a", attempt=1, nonce="n" * 16, outcome=Outcome.DONE, base="1" * 40, **fields)


LARGE = handoff(
    files=tuple(FileChange(path=f"{i}-{ODD}", change=ChangeKind.MODIFIED, added=i) for i in range(5000)),
    residue=(Residue(path=ODD, reason="small"),),
    output={"hits": {f"path {i}": i for i in range(20_000)}},
)


def test_a_small_handoff_stays_as_it_is(hub: Hub) -> None:
    small = handoff(residue=(Residue(path=ODD, reason="r"),))

    assert spill(small, hub, "t") is small
    assert unspill(small, hub) is small


def test_large_fields_come_back_the_same_and_are_kept_alive_by_refs(hub: Hub) -> None:
    told = spill(LARGE, hub, "t")

    assert (told.files, told.output, told.residue) == ((), {}, LARGE.residue)
    assert {name: one.count for name, one in told.spilled.items()} == {"files": 5000, "output": 1}
    assert set(hub.refs("refs/rolecall/t/blobs/").values()) == {one.blob for one in told.spilled.values()}
    assert unspill(told, hub) == LARGE


def test_the_same_fields_spill_to_the_same_blobs(hub: Hub) -> None:
    assert spill(LARGE, hub, "t") == spill(LARGE, hub, "t")


def test_another_content_than_announced_is_refused(hub: Hub) -> None:
    told = spill(LARGE, hub, "t")
    forged = told.spilled["files"].model_copy(update={"blob": hub.write_blob(b"\x90")})

    with pytest.raises(ContractError, match="not what its digest says"):
        unspill(told.model_copy(update={"spilled": {"files": forged}}), hub)


@pytest.mark.parametrize("content", [b"\xc1", b"\x91\x01", b"\x81\xa1a\x01", b"not msgpack at all"])
def test_a_field_that_does_not_decode_or_fit_its_schema_is_refused(hub: Hub, content: bytes) -> None:
    from hashlib import sha256

    told = Spill(
        blob=hub.write_blob(content), digest=sha256(content).hexdigest(), count=1, size_bytes=len(content)
    )

    with pytest.raises(ContractError):
        unspill(handoff(spilled={"files": told}), hub)


def test_a_field_that_decides_cannot_be_spilled(hub: Hub) -> None:
    told = Spill(blob=hub.write_blob(b"\xa4pass"), digest="d", count=1, size_bytes=5)

    with pytest.raises(ContractError, match="may not be spilled"):
        unspill(handoff(spilled={"verdict": told}), hub)


def test_a_blob_that_is_nowhere_is_an_error(hub: Hub) -> None:
    with pytest.raises(WorkspaceError):
        unspill(handoff(spilled={"files": Spill(blob="1" * 40, digest="d", count=1, size_bytes=1)}), hub)

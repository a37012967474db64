"""The bytes of a grant: a role in another language, or of another version, must be able to rely on them."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgpack
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bus.grants import GrantExpiredError, SigningKey, open_granted, sign
from schemas.action import Action
from schemas.errors import ContractError
from schemas.messages import ActionRequested

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "recordings" / "grant.v1.json").read_text("utf-8")
)
KEY = SigningKey.from_seed(bytes.fromhex(RECORDED["seed"]))
PUBLIC_KEY = bytes.fromhex(RECORDED["public_key"])
ACTION = Action.model_validate(RECORDED["fields"])
START_BY: int = RECORDED["start_by"]


def recorded_message(**changes: Any) -> ActionRequested:
    told = {
        "action_id": ACTION.action_id,
        "contract": ACTION.contract,
        "step": ACTION.step,
        "action": bytes.fromhex(RECORDED["action"]),
        "grant": bytes.fromhex(RECORDED["grant"]),
        "signature": bytes.fromhex(RECORDED["signature"]),
    }
    return ActionRequested.model_validate(told | changes)


def opened(
    message: ActionRequested, *, pool: str = "executor", environment: str = "test", now_us: int = START_BY
) -> Action:
    return open_granted(message, PUBLIC_KEY, environment=environment, pool=pool, now_us=now_us)


def signed_over(grant: dict[str, Any]) -> dict[str, bytes]:
    packed = msgpack.packb(grant)
    return {"grant": packed, "signature": KEY.sign_bytes(packed)}


def test_signing_the_recorded_action_gives_the_recorded_bytes() -> None:
    message = sign(ACTION, START_BY, KEY)

    assert message == recorded_message()
    assert KEY.public_key == PUBLIC_KEY


def test_a_recorded_grant_still_opens() -> None:
    assert opened(recorded_message()) == ACTION


def test_a_grant_can_be_checked_with_nothing_but_messagepack_sha256_and_ed25519() -> None:
    message = recorded_message()

    Ed25519PublicKey.from_public_bytes(PUBLIC_KEY).verify(message.signature, message.grant)
    grant = msgpack.unpackb(message.grant)

    assert grant == {
        "v": 1,
        "task": ACTION.task,
        "action_id": ACTION.action_id,
        "attempt": 1,
        "pool": "executor",
        "environment": "test",
        "base": ACTION.base,
        "digest": sha256(message.action).hexdigest(),
        "start_by": START_BY,
    }


def test_unknown_fields_of_a_newer_grant_are_ignored() -> None:
    grant = msgpack.unpackb(recorded_message().grant) | {"approved_by": "someone"}

    assert opened(recorded_message(**signed_over(grant))) == ACTION


@pytest.mark.parametrize("field", ["action", "grant", "signature"])
def test_one_changed_bit_anywhere_is_refused(field: str) -> None:
    good = getattr(recorded_message(), field)

    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 0x01
        with pytest.raises(ContractError):
            opened(recorded_message(**{field: bytes(bad)}))


def test_a_grant_of_another_key_is_refused() -> None:
    forged = sign(ACTION, START_BY, SigningKey.generate())

    with pytest.raises(ContractError, match="not signed by this environment's supervisor"):
        opened(forged)


def test_a_genuine_grant_does_not_carry_another_action() -> None:
    other = sign(
        ACTION.model_copy(update={"input": {"language": "python", "match": "x", "replace": "rm"}}),
        START_BY,
        KEY,
    )

    with pytest.raises(ContractError, match="digest differs"):
        opened(recorded_message(action=other.action))


@pytest.mark.parametrize("field", ["task", "action_id", "attempt", "pool", "environment", "base"])
def test_a_signed_grant_that_names_other_work_than_its_action_is_refused(field: str) -> None:
    grant = msgpack.unpackb(recorded_message().grant)
    grant[field] = 2 if field == "attempt" else "f" * 40

    with pytest.raises(ContractError, match="do not name the same work"):
        opened(recorded_message(**signed_over(grant)))


@pytest.mark.parametrize("field", ["action_id", "contract", "step"])
def test_a_message_that_tells_another_story_than_its_action_is_refused(field: str) -> None:
    with pytest.raises(ContractError, match="not what the action says"):
        opened(recorded_message(**{field: "another"}))


def test_a_grant_for_another_pool_or_environment_is_refused() -> None:
    with pytest.raises(ContractError, match="'executor'"):
        opened(recorded_message(), pool="tester")
    with pytest.raises(ContractError, match="environment 'test'"):
        opened(recorded_message(), environment="production")


def test_a_grant_ends_with_its_start_by_time_and_says_what_it_was_for() -> None:
    with pytest.raises(GrantExpiredError) as caught:
        opened(recorded_message(), now_us=START_BY + 1)

    assert caught.value.action == ACTION


@pytest.mark.parametrize(
    "junk", [b"", b"\xc1", b"\x81", b"\x80", b"\x93\x01\x02\x03", b"\x91" * 2_000, b"\xdf\xff\xff\xff\xff"]
)
def test_signed_junk_is_refused_and_breaks_nothing(junk: bytes) -> None:
    with pytest.raises(ContractError):
        opened(recorded_message(grant=junk, signature=KEY.sign_bytes(junk)))


def test_paths_that_are_not_utf8_and_bytes_in_inputs_survive() -> None:
    odd = ACTION.model_copy(
        update={
            "input": {"blob": b"\x00\xff", "big": 2**63, "none": None},
            "reach": ACTION.reach.model_validate({"shard": {"start": "caf\udce9"}}),
        }
    )

    assert opened(sign(odd, START_BY, KEY)) == odd


def test_an_input_that_messagepack_cannot_carry_is_refused_at_signing() -> None:
    with pytest.raises(ContractError, match="cannot be packed"):
        sign(ACTION.model_copy(update={"input": {"huge": 2**64}}), START_BY, KEY)

"""Bytes that are trusted by nobody: what goes out is checked, what comes in is a fault and never a crash."""

from collections.abc import Mapping

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bus import codec
from bus.intake import Intake
from schemas.clock import new_id
from schemas.envelope import ENVELOPE_VERSION, MAX_ENVELOPE_BYTES, Envelope, Sender
from schemas.errors import ContractError
from schemas.messages import ActionRequested
from schemas.words import Lane


def envelope(
    kind: str = "probe.sent", body: Mapping[str, object] | None = None, **fields: object
) -> Envelope:
    return Envelope.model_validate(
        {
            "environment": "test",
            "message_id": new_id(),
            "correlation_id": new_id(),
            "kind": kind,
            "sender": Sender(role="supervisor", instance="host-1-1", version="0.1.0"),
            "created_at": 1_700_000_000_000_000,
            "body": {"token": "t"} if body is None else body,
        }
        | fields
    )


def read(raw: bytes, roles_of_users: dict[str, str] | None = None, user: str | None = None) -> str | None:
    delivery = Intake("test", roles_of_users).read(
        raw, queue="q", exchange="test.events", key="k", redelivered=False, headers={}, handle=None, user=user
    )
    return delivery.fault


def test_an_envelope_comes_back_equal() -> None:
    sent = envelope(
        causation_id="cause-123", ttl_ms=5, attempt=3, lane=Lane.STANDING, traceparent="00-ab-cd-01"
    )

    assert codec.decode(codec.encode(sent)) == sent


def test_bytes_in_a_body_travel_as_bytes() -> None:
    body = {
        "action_id": "a",
        "contract": "a.b@1",
        "step": "s",
        "action": b"\xff\x00",
        "grant": b"",
        "signature": b"s",
    }

    received = codec.decode(codec.encode(envelope("action.requested", body)))

    assert codec.body_of(received) == ActionRequested.model_validate(body)


def test_a_path_that_is_not_utf8_survives() -> None:
    path = b"caf\xe9.py".decode("utf-8", "surrogateescape")

    received = codec.decode(codec.encode(envelope(body={"token": path})))

    assert received.body == {"token": path}


def test_fields_of_a_newer_sender_are_ignored() -> None:
    fields = msgpack.unpackb(codec.encode(envelope()))
    fields["invented_later"] = 1
    fields["body"]["too"] = 2

    assert read(msgpack.packb(fields)) is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kind": "probe.send"}, "There is no message kind 'probe.send'. Did the sender mean 'probe.sent'?"),
        ({"body": {}}, "probe.sent: the body breaks its schema: token: Field required."),
        ({"v": ENVELOPE_VERSION + 1}, "this process reads up to 1"),
        ({"sender": None}, "The envelope breaks its schema: sender"),
        ({"environment": "other"}, "It comes from another environment, 'other'."),
    ],
)
def test_what_is_wrong_with_an_envelope_is_said(change: dict[str, object], told: str) -> None:
    fields = msgpack.unpackb(codec.encode(envelope())) | change

    fault = read(msgpack.packb(fields))

    assert fault is not None
    assert told in fault


def test_a_sender_is_believed_only_as_far_as_the_broker_vouches() -> None:
    raw = codec.encode(envelope())
    roles = {"supervisor-user": "supervisor", "executor-user": "executor"}

    assert read(raw, roles, "supervisor-user") is None
    assert read(raw, roles, "executor-user") is not None
    assert read(raw, roles, None) is not None


def test_an_envelope_over_a_mebibyte_is_refused_on_both_sides() -> None:
    large = envelope(body={"token": "x" * MAX_ENVELOPE_BYTES})

    with pytest.raises(ContractError, match="hub"):
        codec.encode(large)
    with pytest.raises(ContractError, match="1048577 bytes"):
        codec.decode(bytes(MAX_ENVELOPE_BYTES + 1))


@pytest.mark.parametrize("body", [{"tokens": 3}, {}, {"token": 3}])
def test_a_body_that_breaks_its_schema_is_the_senders_error(body: dict[str, object]) -> None:
    with pytest.raises(ContractError, match=r"probe\.sent"):
        codec.encode(envelope(body=body))


def test_what_does_not_travel_is_the_senders_error() -> None:
    for value in (object(), 2**70):
        with pytest.raises(ContractError, match="does not travel"):
            codec.encode(envelope(body={"token": "t", "more": value}))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_fault_and_never_a_crash(raw: bytes) -> None:
    assert read(raw) is not None


_anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=300)
@given(field=st.sampled_from([*Envelope.model_fields]), value=_anything)
def test_any_value_in_any_field_is_read_or_a_fault(field: str, value: object) -> None:
    fields = msgpack.unpackb(codec.encode(envelope())) | {field: value}

    read(msgpack.packb(fields))


def test_a_deeply_nested_message_is_a_fault() -> None:
    assert read(b"\x81\xa1x" + b"\x91" * 100_000 + b"\xc0") is not None
    assert read(b"\x91" * 900 + b"\xc0") is not None

"""What a worker lets in, what it answers without running it, and what it only sets aside."""

from dataclasses import replace
from typing import Any

import pytest

from bus.admission import Admission, Admit, Park, Refuse, admit
from bus.api import Delivery
from bus.grants import SigningKey
from bus.served import serve_contracts
from schemas.errors import ContractError
from schemas.messages import RoleDrained
from schemas.words import Outcome
from tests.role_builders import (
    ENVIRONMENT,
    HOUR_US,
    KEY,
    POOL,
    PURE,
    SPEC,
    action,
    delivered,
    granted,
    work_envelope,
)

NOW = 5_000_000
SERVED = serve_contracts(SPEC)


def admitted(delivery: Delivery, now_us: int = NOW) -> Admission:
    return admit(
        delivery,
        contracts=SERVED,
        public_key=KEY.public_key,
        environment=ENVIRONMENT,
        pool=POOL,
        now_us=now_us,
    )


def parked_reason(delivery: Delivery) -> str:
    decision = admitted(delivery)
    assert isinstance(decision, Park)
    return decision.reason


def refused(delivery: Delivery, now_us: int = NOW) -> tuple[Outcome, str]:
    decision = admitted(delivery, now_us)
    assert isinstance(decision, Refuse)
    return decision.outcome, decision.failure.code


def test_granted_work_that_fits_its_contract_is_admitted() -> None:
    envelope = work_envelope(action())

    assert admitted(delivered(envelope)) == Admit(envelope, action(), SERVED[PURE.ref])


def test_a_message_with_a_fault_is_parked_with_that_fault() -> None:
    assert (
        parked_reason(delivered(None, fault="The message is not MessagePack."))
        == "The message is not MessagePack."
    )


def test_another_kind_of_message_in_the_work_queue_is_parked() -> None:
    delivery = delivered(work_envelope(action()))
    delivery.envelope = work_envelope(action(), kind="role.drained")
    delivery.body = RoleDrained(reason="x")

    assert "'role.drained' is no work" in parked_reason(delivery)


def test_a_forged_grant_is_parked() -> None:
    forged = work_envelope(action(), granted(action(), key=SigningKey.generate()))

    assert "not signed" in parked_reason(delivered(forged))


def test_an_altered_action_is_parked() -> None:
    altered = granted(action()).model_copy(update={"action": granted(action(input={"text": "evil"})).action})

    assert "digest differs" in parked_reason(delivered(work_envelope(action(), altered)))


@pytest.mark.parametrize("changes", [{"pool": "tester"}, {"environment": "another"}])
def test_work_for_another_pool_or_environment_is_parked(changes: dict[str, Any]) -> None:
    foreign = action(**changes)

    assert "not for 'executor'" in parked_reason(delivered(work_envelope(foreign)))


@pytest.mark.parametrize("changes", [{"correlation_id": "another-task"}, {"attempt": 7}])
def test_an_envelope_that_names_other_work_than_its_grant_is_parked(changes: dict[str, Any]) -> None:
    assert "another task or attempt" in parked_reason(delivered(work_envelope(action(), **changes)))


def test_work_that_outlived_its_message_is_answered_as_expired() -> None:
    old = work_envelope(action(), created_at=0, ttl_ms=1_000)

    assert refused(delivered(old)) == (Outcome.EXPIRED, "expired")


def test_work_whose_grant_ended_is_answered_as_expired() -> None:
    late = work_envelope(action(), granted(action(), start_by=HOUR_US))

    assert isinstance(admitted(delivered(late), now_us=HOUR_US), Admit)
    assert refused(delivered(late), now_us=HOUR_US + 1) == (Outcome.EXPIRED, "expired")


def test_an_expired_grant_in_a_foreign_envelope_is_parked() -> None:
    late = work_envelope(action(), granted(action(), start_by=0), correlation_id="another-task")

    assert "another task or attempt" in parked_reason(delivered(late))


def test_a_contract_that_is_not_served_here_is_answered_so_that_no_step_hangs() -> None:
    other = work_envelope(action(contract="count.lines@1"))

    assert refused(delivered(other)) == (Outcome.COULD_NOT_RUN, "contract_not_served")


@pytest.mark.parametrize("value", [{}, {"text": 1}, {"text": "a", "more": 1}])
def test_an_input_that_does_not_fit_its_contract_is_answered_with_what_is_wrong(
    value: dict[str, Any],
) -> None:
    assert refused(delivered(work_envelope(action(input=value)))) == (Outcome.COULD_NOT_RUN, "input_refused")


def test_a_contract_whose_schema_is_none_is_refused_before_any_work_comes() -> None:
    broken = PURE.model_copy(update={"input": {"type": "text"}})

    with pytest.raises(ContractError, match=r"count\.words@1: its input or output is no JSON Schema"):
        serve_contracts(replace(SPEC, contracts=(broken,)))

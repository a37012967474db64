"""What no honest sender sends: the supervisor sets it aside with a reason, ends what hangs on it, and goes on."""

from pathlib import Path
from typing import Any

import msgpack
import pytest

from bus.api import Exchange
from bus.codec import encode
from bus.memory_broker import Stored
from schemas.action import Action
from schemas.clock import new_id, now_us
from schemas.envelope import MAX_ENVELOPE_BYTES, Envelope, Sender
from schemas.handoff import Finding, Handoff
from schemas.messages import ActionHandoff, RoleHeartbeat
from schemas.report import DeadLine
from schemas.words import Outcome, TaskStatus, Verdict
from supervisor.journal.report import report
from supervisor.journal.trace import trace
from tests.broker.quick_time import quick_time
from tests.small_answers import OnNote, handoff
from tests.small_fleet import ENVIRONMENT, Fleet, recipe, small_fleet

__all__ = ["quick_time"]

SWAP = recipe(("one", "eins"))
pytestmark = pytest.mark.usefixtures("quick_time")


def packed(**changes: Any) -> bytes:
    """An envelope as bytes, with whatever a stranger may put into it."""
    known: dict[str, Any] = {
        "v": 1,
        "environment": ENVIRONMENT,
        "message_id": new_id(),
        "correlation_id": new_id(),
        "kind": "task.cancel_requested",
        "sender": {"role": "client", "instance": "client-1", "version": "1"},
        "created_at": now_us(),
        "body": {"reason": "because"},
    }
    raw: bytes = msgpack.packb(known | changes, unicode_errors="surrogateescape")
    return raw


async def parked(fleet: Fleet, count: int = 1) -> list[DeadLine]:
    with fleet.reading() as reader:
        await fleet.wait(lambda: len(reader.dead()) >= count)
        return reader.dead()


async def still_works(fleet: Fleet) -> None:
    task = await fleet.submit(SWAP)
    assert await fleet.ended(task) == TaskStatus.COMPLETED


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\xc1 not MessagePack", "not MessagePack"),
        (b"", "not MessagePack"),
        (
            packed(kind="task.submited"),
            "There is no message kind 'task.submited'. Did the sender mean 'task.submitted'?",
        ),
        (packed(body={"reason": 7}), "the body breaks its schema"),
        (packed(environment="another"), "It comes from another environment, 'another'."),
        (packed(v=99), "The envelope has version 99"),
        (packed(sender={"role": "x"}), "The envelope breaks its schema"),
        (packed(message_id="caf\udce9-12345"), "The envelope breaks its schema: message_id"),
        (packed(body={"reason": "x" * MAX_ENVELOPE_BYTES}), f"{MAX_ENVELOPE_BYTES} are allowed"),
        (
            packed(kind="lease.granted", body={"action_id": "a", "attempt": 1, "nonce": "n"}),
            "is not for the supervisor",
        ),
    ],
    ids=[
        "garbage",
        "empty",
        "kind",
        "schema",
        "environment",
        "version",
        "envelope",
        "surrogate",
        "large",
        "order",
    ],
)
async def test_what_cannot_be_used_is_parked_with_its_bytes_and_a_reason(
    tmp_path: Path, raw: bytes, reason: str
) -> None:
    async with small_fleet(tmp_path) as fleet:
        fleet.throw(raw)
        (dead,) = await parked(fleet)

        assert reason in dead.reason
        assert dead.queue == fleet.topology.supervisor
        with fleet.reading() as reader:
            assert reader.dead_raw(dead.id) == raw
        await still_works(fleet)


async def test_numbers_too_large_for_any_journal_stop_nothing(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        fleet.throw(packed(created_at=2**64 - 1))
        announced = {
            "role": "caf\udce9", "pool": "executor", "host": "\udce9", "pid": 2**64 - 1, "version": "1",
            "slots": 0, "digest": "d",
        }  # fmt: skip
        fleet.throw(packed(kind="role.announced", body=announced))

        await still_works(fleet)


async def test_a_heartbeat_of_a_pool_that_cannot_be_stops_nothing(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        said = RoleHeartbeat(role="x", pool="Not A Pool", host="h", pid=1, slots=1)
        raw = packed(kind="role.heartbeat", body=said.model_dump())
        for _ in range(3):
            fleet.broker.publish(fleet.topology.exchange(Exchange.HEARTBEAT), Stored(raw, "role.heartbeat.x"))

        await still_works(fleet)
        with fleet.reading() as reader:
            assert reader.dead() == []


async def test_what_a_worker_parks_is_listed_too(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        work = fleet.topology.exchange(Exchange.WORK)
        await fleet.wait(lambda: fleet.broker.publish(work, Stored(b"no work at all", "executor")))

        (dead,) = await parked(fleet)

        assert dead.queue == fleet.topology.work("executor")
        assert "not MessagePack" in dead.reason
        await still_works(fleet)


async def test_what_found_no_queue_is_fed_again_and_the_rest_is_shown(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:
        unroutable = fleet.topology.exchange(Exchange.UNROUTABLE)
        task = new_id()
        await fleet.stop_supervisor()
        body = {"request": None, "request_blob": "0" * 40}
        lost = Envelope.model_validate(
            msgpack.unpackb(packed(correlation_id=task, kind="task.submitted", body=body))
        )
        fleet.broker.publish(unroutable, Stored(encode(lost), "task.submitted.client"))
        stray = packed(kind="role.drained", body={"reason": "x"})
        fleet.broker.publish(unroutable, Stored(stray, "role.drained"))
        fleet.start_supervisor()

        assert await fleet.ended(task) == TaskStatus.REJECTED
        (dead,) = await parked(fleet)
        assert (dead.reason, dead.queue) == ("no queue takes it", fleet.topology.unroutable)


# ---- handoffs ----------------------------------------------------------------------------------------------------


class Sabotage:
    """Has the first change of a task replaced by something else, and keeps what was asked."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.asked: list[Action] = []
        self._honest = fleet.answers["rewrite.pattern"]
        fleet.answers["rewrite.pattern"] = self._answer

    async def instead(self, action: Action) -> Handoff | None:
        """What the first attempt hands in."""
        raise NotImplementedError

    async def _answer(self, action: Action, note: OnNote) -> Handoff:
        self.asked.append(action)
        if len(self.asked) == 1:
            told = await self.instead(action)
            if told is not None:
                return told
        return await self._honest(action, note)


async def failures(fleet: Fleet, task: str) -> list[str]:
    with fleet.reading() as reader:
        told = trace(reader, task)
    return [one.text for one in told.moments if one.what == "attempt_failed"]


async def test_a_forged_handoff_changes_nothing(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:

        class Forger(Sabotage):
            async def instead(self, action: Action) -> Handoff | None:
                evil = handoff(action, Outcome.DONE, result="e" * 40)
                stranger = Sender(role="executor", instance="a-stranger", version="1")
                holder = Sender(role="executor", instance="executor-1", version="1")
                wrong = evil.model_copy(update={"nonce": "f" * 32})
                for sender, told in ((stranger, evil), (holder, wrong)):
                    body = ActionHandoff(handoff=told).model_dump()
                    await fleet.say("action.handoff", body, action.task, sender=sender)
                return None

        Forger(fleet)
        task = await fleet.submit(SWAP)

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        with fleet.reading() as reader:
            told = trace(reader, task)
            assert report(reader, task).retries == 0
        aside = {one.text.split(": ")[1] for one in told.moments if one.what == "handoff_set_aside"}
        assert aside == {"it does not come from a recorded holder.", "the nonce is not this attempt's."}


@pytest.mark.parametrize("how", ["schema", "large"])
async def test_a_handoff_that_cannot_be_read_ends_its_attempt_and_the_step_runs_again(
    tmp_path: Path, how: str
) -> None:
    async with small_fleet(tmp_path) as fleet:

        class Breaker(Sabotage):
            async def instead(self, action: Action) -> Handoff | None:
                told = handoff(action).model_dump(mode="json")
                broken = (
                    {"outcome": "splendid"}
                    if how == "schema"
                    else {"open_questions": ["x" * MAX_ENVELOPE_BYTES]}
                )
                raw = packed(
                    kind="action.handoff",
                    correlation_id=action.task,
                    sender={"role": "executor", "instance": "executor-1", "version": "1"},
                    body={"handoff": told | broken},
                )
                fleet.throw(raw, key="action.handoff.executor")
                return None

        Breaker(fleet)
        fleet.shards = 1
        task = await fleet.submit(SWAP)

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        (dead,) = await parked(fleet)
        assert (dead.kind, dead.task) == ("action.handoff", task)
        (failure,) = await failures(fleet, task)
        assert "unreadable_handoff: its handoff cannot be read" in failure


async def test_our_own_worker_replaces_a_handoff_that_is_too_large(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:

        class Talker(Sabotage):
            async def instead(self, action: Action) -> Handoff | None:
                return handoff(
                    action,
                    Outcome.NO_CHANGE,
                    open_questions=("x" * MAX_ENVELOPE_BYTES,),
                    output={"sites": 0, "files_seen": 0},
                )

        Talker(fleet)
        fleet.shards = 1
        task = await fleet.submit(SWAP)

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        (failure,) = await failures(fleet, task)
        assert "handoff_refused" in failure


async def test_a_result_that_the_commits_do_not_bear_out_is_refused(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:

        class Liar(Sabotage):
            async def instead(self, action: Action) -> Handoff | None:
                honest = await self._honest(action, lambda note: None)
                return honest.model_copy(update={"result": action.base, "files": ()})

        Liar(fleet)
        fleet.shards = 1
        task = await fleet.submit(SWAP)

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        (failure,) = await failures(fleet, task)
        assert "refused: " in failure
        assert "not on its base" in failure


async def test_an_output_that_breaks_its_contract_is_refused_whoever_sends_it(tmp_path: Path) -> None:
    async with small_fleet(tmp_path) as fleet:

        class Foreigner(Sabotage):
            async def instead(self, action: Action) -> Handoff | None:
                told = handoff(action, Outcome.NO_CHANGE, output={"sites": "many"})
                holder = Sender(role="executor", instance="executor-1", version="1")
                await fleet.say(
                    "action.handoff", ActionHandoff(handoff=told).model_dump(), action.task, sender=holder
                )
                return None

        Foreigner(fleet)
        fleet.shards = 1
        task = await fleet.submit(SWAP)

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        (failure,) = await failures(fleet, task)
        assert "its output does not fit rewrite.pattern@1" in failure


async def test_a_path_that_is_not_utf_8_is_refused_recorded_and_reported(tmp_path: Path) -> None:
    odd = "caf\udce9.py"
    async with small_fleet(tmp_path) as fleet:
        review = fleet.answers["review.change"]

        async def strict(action: Action, note: OnNote) -> Handoff:
            told = await review(action, note)
            if any(scope.exclude for scope in action.reach.scopes):
                return told
            finding = Finding(gate="parses", text=f"{odd} does not parse", path=odd)
            return told.model_copy(
                update={
                    "verdict": Verdict.FAIL,
                    "findings": (finding,),
                    "output": {"gates": told.output["gates"] | {"parses": "fail"}},
                }
            )

        fleet.answers["review.change"] = strict
        fleet.shards = 1
        task = await fleet.submit(SWAP)

        assert await fleet.ended(task) == TaskStatus.COMPLETED
        with fleet.reading() as reader:
            (unlanded,) = report(reader, task).unlanded
        assert unlanded.path == odd

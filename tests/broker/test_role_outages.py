"""What a role process does when the broker is slow, goes away, or forgets: no work is lost, and none runs twice here."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from bus import taking
from bus.api import Bus, Delivery, Exchange, Outgoing, PublishTimeoutError, Settlement, TopologyMismatchError
from bus.runtime import serve
from bus.stopping import StopSignal
from schemas.words import Outcome
from tests.broker.worlds import World, until
from tests.role_builders import KEY, LIMIT_S, POOL, SPEC, HeldWorkers, action
from tests.role_stage import INSTANCE, RoleStage


@pytest.fixture
async def stage(world: World) -> RoleStage:
    stage = RoleStage(world, await world.bus("host-1-1"))
    await stage.listen()
    return stage


class TroubledBus:
    """A bus whose publishes and settlements the test can get in the way of."""

    def __init__(self, bus: Bus) -> None:
        self.inner = bus
        self.before_publish: Callable[[Outgoing], Awaitable[None]] | None = None
        self.after_publish: Callable[[Outgoing], Awaitable[None]] | None = None
        self.before_settle: Callable[[Delivery, Settlement], Awaitable[None]] | None = None
        self.settlements: Counter[Settlement] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def publish(self, outgoing: Outgoing) -> None:
        if self.before_publish:
            await self.before_publish(outgoing)
        await self.inner.publish(outgoing)
        if self.after_publish:
            await self.after_publish(outgoing)

    async def settle(self, delivery: Delivery, settlement: Settlement, reason: str = "") -> None:
        if delivery.queue.endswith(f".work.{POOL}"):
            self.settlements[settlement] += 1
            if self.before_settle:
                await self.before_settle(delivery, settlement)
        await self.inner.settle(delivery, settlement, reason)


@pytest.fixture
async def troubled(world: World) -> Any:
    return TroubledBus(await world.bus(INSTANCE))


async def cut(world: World, bus: Any) -> None:
    """The connection is lost and comes back."""
    await world.cut(getattr(bus, "inner", bus))
    await until(lambda: bus.is_connected)


async def test_a_lost_connection_neither_repeats_nor_cancels_what_runs(
    stage: RoleStage, world: World
) -> None:
    workers = HeldWorkers()
    async with stage.role(workers) as process:
        await stage.send_work(action(1))
        job = await workers.started(1)

        await cut(world, process.bus)
        await stage.event("role.announced", 2)
        job.finish()
        handoff = await stage.handoff()
        await stage.send_work(action(2))
        await workers.started(2)

    assert not job.killed
    assert handoff.outcome is Outcome.NO_CHANGE
    assert [job.action.action_id for job in workers.jobs] == ["action-1", "action-2"]


async def test_work_that_ends_during_an_outage_is_handed_off_after_it(stage: RoleStage, world: World) -> None:
    workers = HeldWorkers()
    async with stage.role(workers) as process:
        await stage.send_work(action(1))
        job = await workers.started(1)

        await world.cut(process.bus)
        was_connected = process.bus.is_connected
        job.finish()
        handoff = await stage.handoff()

    assert not was_connected
    assert handoff.action_id == "action-1"


async def test_a_handoff_that_is_not_confirmed_is_published_until_it_is_with_the_same_id(
    stage: RoleStage, troubled: Any
) -> None:
    workers, tries = HeldWorkers(), list[str]()

    async def fail_twice(outgoing: Outgoing) -> None:
        if outgoing.envelope.kind == "action.handoff":
            tries.append(outgoing.envelope.message_id)
            if len(tries) <= 2:
                raise PublishTimeoutError("not confirmed in time")

    troubled.after_publish = fail_twice
    async with stage.role(workers, bus=troubled):
        await stage.send_work(action(1))
        (await workers.started(1)).finish()
        await stage.event("action.handoff", 3)
        await stage.heartbeat(lambda body: not body["running"])  # confirmed at last

    assert len(set(tries)) == 1
    assert len(tries) == 3


async def test_an_attempt_is_listed_until_its_handoff_is_confirmed(stage: RoleStage, troubled: Any) -> None:
    workers, confirmed = HeldWorkers(), asyncio.Event()

    async def hold_handoffs(outgoing: Outgoing) -> None:
        if outgoing.envelope.kind == "action.handoff":
            await confirmed.wait()

    troubled.before_publish = hold_handoffs
    async with stage.role(workers, bus=troubled):
        await stage.send_work(action(1))
        (await workers.started(1)).finish()
        await stage.send_work(action(2))
        await workers.started(2)  # the slot is free long before
        reporting = await stage.heartbeat(lambda body: len(body["running"]) == 2)
        confirmed.set()
        after = await stage.heartbeat(lambda body: len(body["running"]) == 1)

    assert [one["action_id"] for one in reporting["running"]] == ["action-1", "action-2"]
    assert [one["action_id"] for one in after["running"]] == ["action-2"]


async def test_an_acceptance_that_is_not_confirmed_is_published_again_before_the_work_starts(
    stage: RoleStage, troubled: Any
) -> None:
    workers, tries = HeldWorkers(), list[int]()

    async def fail_once(outgoing: Outgoing) -> None:
        if outgoing.envelope.kind == "action.accepted":
            tries.append(len(workers.jobs))
            if len(tries) == 1:
                raise PublishTimeoutError("not confirmed in time")

    troubled.after_publish = fail_once
    async with stage.role(workers, bus=troubled):
        await stage.send_work(action(1))
        await workers.started(1)

    assert tries == [0, 0]
    assert len({one.message_id for one in stage.said("action.accepted")}) == 1
    assert troubled.settlements == {Settlement.ACK: 1}


@pytest.mark.parametrize("slots", [1, 2])
async def test_work_whose_connection_is_lost_before_its_acceptance_comes_again_and_runs_once(
    stage: RoleStage, troubled: Any, world: World, slots: int
) -> None:
    workers, tries = HeldWorkers(), list[str]()

    async def lose_the_connection_once(outgoing: Outgoing) -> None:
        if outgoing.envelope.kind == "action.accepted":
            tries.append(outgoing.envelope.message_id)
            if len(tries) == 1:
                await cut(world, troubled)
                raise PublishTimeoutError("the connection was lost")

    troubled.before_publish = lose_the_connection_once
    async with stage.role(workers, replace(SPEC, slots=slots), bus=troubled):
        await stage.send_work(action(1))
        (await workers.started(1)).finish()
        await stage.handoff()
        await stage.heartbeat(lambda body: not body["running"])

    assert len(workers.jobs) == 1
    assert len(set(tries)) == 2


async def test_work_whose_acknowledgement_is_lost_comes_again_and_runs_once(
    stage: RoleStage, troubled: Any, world: World
) -> None:
    workers, lost = HeldWorkers(), list[Settlement]()

    async def lose_the_connection_once(_delivery: Delivery, settlement: Settlement) -> None:
        if not lost:
            lost.append(settlement)
            await cut(world, troubled)

    troubled.before_settle = lose_the_connection_once
    async with stage.role(workers, replace(SPEC, slots=2), bus=troubled):
        await stage.send_work(action(1))
        await stage.event("action.accepted", 2)
        workers.jobs[0].finish()
        await stage.handoff()

    assert lost == [Settlement.ACK]
    assert len(workers.jobs) == 1


async def test_heartbeats_go_on_while_nothing_else_gets_through(stage: RoleStage, troubled: Any) -> None:
    workers = HeldWorkers()

    async def hold_events(outgoing: Outgoing) -> None:
        if outgoing.exchange is Exchange.EVENTS and outgoing.envelope.kind != "role.announced":
            await asyncio.Event().wait()

    troubled.before_publish = hold_events
    async with stage.role(workers, bus=troubled):
        await stage.send_work(action(1))
        for _ in range(3):
            await stage.heartbeat(lambda body: True)

    assert workers.jobs == []


async def test_unreported_work_is_bounded_and_goes_on_once_it_is_reported(
    stage: RoleStage, troubled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "MOST_UNREPORTED", 2)
    workers, confirmed = HeldWorkers(), asyncio.Event()

    async def hold_handoffs(outgoing: Outgoing) -> None:
        if outgoing.envelope.kind == "action.handoff":
            await confirmed.wait()

    troubled.before_publish = hold_handoffs
    async with stage.role(workers, bus=troubled):
        for number in range(1, 5):
            await stage.send_work(action(number))
        for number in (1, 2):
            (await workers.started(number)).finish()
        await stage.heartbeat(lambda body: len(body["running"]) == 2)
        await stage.heartbeat(lambda body: True)
        taken_while_nothing_is_reported = len(workers.jobs)
        confirmed.set()
        await workers.started(3)

    assert taken_while_nothing_is_reported == 2


async def test_a_leaving_process_waits_for_its_handoffs_to_be_confirmed(
    stage: RoleStage, troubled: Any
) -> None:
    workers, confirmed = HeldWorkers(), asyncio.Event()

    async def hold_handoffs(outgoing: Outgoing) -> None:
        if outgoing.envelope.kind == "action.handoff":
            await confirmed.wait()

    troubled.before_publish = hold_handoffs
    async with stage.role(workers, bus=troubled) as process:
        await stage.send_work(action(1))
        (await workers.started(1)).finish()
        process.stop.drain("enough")
        await stage.heartbeat(lambda body: body["state"] == "draining")
        confirmed.set()
        await process.ended()
        goodbye = await stage.event("role.goodbye")

    assert goodbye.body["running"] == []
    assert len(stage.said("action.handoff")) == 1


async def test_a_bus_that_has_ended_ends_the_process_even_when_it_is_idle(world: World) -> None:
    troubled: Any = TroubledBus(await world.bus(INSTANCE))
    beats = list[int]()

    async def end_with_the_second_beat(outgoing: Outgoing) -> None:
        if outgoing.exchange is Exchange.HEARTBEAT:
            beats.append(1)
            if len(beats) == 2:
                raise TopologyMismatchError("The queue has other arguments.")

    troubled.before_publish = end_with_the_second_beat
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.timeout(LIMIT_S):
            await serve(
                SPEC,
                troubled,
                HeldWorkers(),
                public_key=KEY.public_key,
                instance=INSTANCE,
                stop=StopSignal(),
                heartbeat_s=0.01,
            )

    assert caught.group_contains(TopologyMismatchError)


async def test_a_process_leaves_without_a_goodbye_when_there_is_no_broker(
    stage: RoleStage, world: World
) -> None:
    async with stage.role(HeldWorkers()) as process:
        await world.cut(process.bus)
        process.stop.drain("enough")
        await process.ended()


@pytest.mark.parametrize("slots", [1, 2, 5, 16])
async def test_no_delivery_ever_comes_in_without_a_free_slot(
    stage: RoleStage, troubled: Any, slots: int
) -> None:
    chance = random.Random(slots)
    workers = HeldWorkers()
    count = 30 * slots
    async with stage.role(workers, replace(SPEC, slots=slots), bus=troubled):
        for number in range(count):
            await stage.send_work(action(number))
        finished = 0
        while finished < count:
            await workers.started(finished + 1)
            running = [job for job in workers.jobs if not job.result.done()]
            assert len(running) <= slots
            for job in chance.sample(running, k=chance.randint(1, len(running))):
                job.finish()
                finished += 1
        await stage.event("action.handoff", count)

    assert troubled.settlements == {Settlement.ACK: count}
    assert len({job.action.action_id for job in workers.jobs}) == len(workers.jobs) == count

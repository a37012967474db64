"""From decided events to rows: the record, the leases, and the pictures that readers use."""

from typing import Any

from schemas.lossless import load_json
from schemas.task import TaskProgress
from schemas.words import Outcome
from supervisor.journal.journal import Group
from supervisor.leases import Lease, Leases
from supervisor.projecting import record, task_row
from supervisor.saga import events as ev
from supervisor.saga.moves import StepStatus
from supervisor.saga.state import Refusal, TaskState
from tests.unit.saga_world import World, rule

STATE = TaskState("task-1")
HELD = ev.ActionHeld(at=5, action_id="a-1", attempt=1, instance="w", due=9)


def recorded(leases: Leases, *events: ev.Event, **changes: Any) -> Group:
    group = Group()
    known: dict[str, Any] = {"message_id": "m-1", "sent_at": 3}
    record(group, leases, STATE, events, **known | changes)
    return group


def test_every_event_is_kept_with_the_message_that_caused_it() -> None:
    event = ev.PoolMissed(at=7, pool="tester")

    group = recorded(Leases(), event)

    assert group.events == [
        {
            "task": "task-1",
            "at": 7,
            "name": "PoolMissed",
            "data": b'{"at":7,"pool":"tester"}',
            "message_id": "m-1",
        }
    ]


def test_a_holder_is_a_lease_accepted_on_its_own_clock() -> None:
    leases = Leases()

    group = recorded(leases, HELD)

    assert leases.of_instance("w") == [Lease("task-1", "a-1", 1, "w", accepted_at=3)]
    assert group.leases == {
        ("a-1", 1, "w"): {"action_id": "a-1", "attempt": 1, "instance": "w", "task": "task-1", "since": 5}
    }


def test_a_lease_that_ends_takes_only_its_holder() -> None:
    leases = Leases()
    recorded(leases, HELD, HELD.model_copy(update={"instance": "v"}))

    group = recorded(leases, ev.LeaseEnded(at=6, action_id="a-1", attempt=1, instance="w", reason="lost"))

    assert group.leases == {("a-1", 1, "w"): None}
    assert list(leases.instances()) == ["v"]


def test_the_end_of_an_action_or_attempt_ends_every_lease_of_it() -> None:
    for event in (
        ev.ActionEnded(at=6, action_id="a-1", attempt=1, outcome=Outcome.DONE),
        ev.AttemptFailed(at=6, action_id="a-1", attempt=1, code="c", message="m", retry_at=7),
    ):
        leases = Leases()
        recorded(leases, HELD, HELD.model_copy(update={"instance": "v", "attempt": 2}))

        group = recorded(leases, event)

        assert group.leases == {("a-1", 1, "w"): None, ("a-1", 2, "v"): None}
        assert list(leases.instances()) == []


def test_a_lease_that_begins_and_ends_in_one_group_is_gone() -> None:
    ended = ev.ActionEnded(at=6, action_id="a-1", attempt=1, outcome=Outcome.DONE)

    assert recorded(Leases(), HELD, ended).leases == {("a-1", 1, "w"): None}


def test_a_step_that_ended_is_a_row_with_what_is_said_of_it() -> None:
    event = ev.StepEnded(
        at=6,
        step="one.s0",
        status=StepStatus.UNLANDED,
        refusals=(Refusal(step="one.s0", path="caf\udce9.py", reason="no"),),
    )

    (row,) = recorded(Leases(), event).steps

    assert {key: row[key] for key in ("task", "step", "status", "ended_at")} == {
        "task": "task-1",
        "step": "one.s0",
        "status": "unlanded",
        "ended_at": 6,
    }
    assert ev.read_event("StepEnded", row["data"]) == event


def test_a_task_is_a_row_once_it_is_accepted() -> None:
    world = World((rule("one"),))
    before = task_row(world.state, 1)
    world.submit()

    row = task_row(world.state, 99)

    assert before is None
    assert row is not None
    progress = load_json(TaskProgress, row.pop("progress"))
    assert row == {
        "task": "task-1",
        "status": "working",
        "recipe": "demo",
        "repository": "repo",
        "submitted_by": "",
        "accepted_at": world.at,
        "updated_at": 99,
        "ended_at": None,
        "reason": "",
    }
    assert progress.sentence == "planning, and testing the unchanged repository"


def test_leases_are_found_by_action_and_by_instance() -> None:
    leases = Leases()
    one, two = Lease("t", "a-1", 1, "w", 0), Lease("t", "a-2", 1, "w", 0)
    other = Lease("t", "a-1", 2, "v", 0)
    for lease in (one, two, other):
        leases.add(lease)

    assert leases.of_instance("w") == [one, two]
    assert leases.release("a-1", 2, "v") == [other]
    assert leases.release("a-1", 2, "v") == []
    assert leases.release("a-1") == [one]
    assert leases.of_instance("w") == [two]
    assert list(leases.instances()) == ["w"]
    leases.set_handing_off("a-9", 1, "nobody", is_so=True)
    assert leases.silent("nobody") == []

"""The queue that never changes."""

from hypothesis import given
from hypothesis import strategies as st

from supervisor.saga.fifo import Fifo


def filled(*keys: str) -> Fifo:
    queue = Fifo()
    for key in keys:
        queue = queue.push(key)
    return queue


def test_keys_come_out_in_the_order_in_which_they_went_in() -> None:
    assert list(filled("a", "b", "c")) == ["a", "b", "c"]


def test_dropping_through_a_key_drops_what_stood_before_it_too() -> None:
    queue = filled("stale", "a", "b").drop_through("a")

    assert (list(queue), len(queue)) == (["b"], 1)


def test_only_the_first_of_two_equal_keys_is_dropped() -> None:
    assert list(filled("a", "b", "a").drop_through("a")) == ["b", "a"]


def test_a_key_that_is_not_there_drops_nothing() -> None:
    assert list(filled("a", "b").drop_through("c")) == ["a", "b"]


def test_pushing_leaves_the_old_queue_as_it_was() -> None:
    old = filled("a")

    old.push("b")
    old.drop_through("a")

    assert list(old) == ["a"]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"))))
def test_it_behaves_as_a_list_does(steps: list[tuple[bool, str]]) -> None:
    queue, model = Fifo(), list[str]()
    for is_push, key in steps:
        if is_push:
            queue, model = queue.push(key), [*model, key]
        else:
            queue = queue.drop_through(key)
            model = model[model.index(key) + 1 :] if key in model else model

        assert (list(queue), len(queue)) == (model, len(model))

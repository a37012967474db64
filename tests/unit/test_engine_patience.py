"""An expression that would think for ever is ended, with the file and the expression named."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import engines.patience
from engines.patience import TooSlowError
from engines.text_replace import TextReplace
from engines.trial import try_examples
from executor.work import handle
from schemas.errors import ContractError
from schemas.recipe import Rule, RuleExample
from schemas.words import Outcome
from tests.unit.engine_cases import run
from tests.unit.role_work import action_for, context_in, hub_in
from tests.unit.workspace_repos import root_commit

ENDLESS = {"find": r"(a+)+$", "replace": "b", "regex": True}
TRAP = b"a" * 60 + b"!\n"


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(engines.patience, "FILE_LIMIT_S", 0.2)
    before = signal.getsignal(signal.SIGVTALRM)
    yield
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_the_file_and_the_expression_are_named() -> None:
    with pytest.raises(TooSlowError) as refused:
        run(TextReplace(), ENDLESS, {"ok.txt": b"aaa\n", "src/trap.txt": TRAP})

    assert refused.value.message == (
        "The expression '(a+)+$' took longer than 0.2 s of processor time on src/trap.txt."
    )
    assert "(a+)+" in refused.value.suggestion


def test_an_example_that_does_not_end_is_refused() -> None:
    example = RuleExample(before=TRAP.decode(), after="b", path="x.txt")
    rule = Rule(id="r", contract="text.replace@1", input=ENDLESS, examples=(example,))

    with pytest.raises(ContractError, match=r"took longer than .* on x\.txt"):
        try_examples(rule)


def test_an_executor_hands_off_what_took_too_long_and_where(tmp_path: Path) -> None:
    with hub_in(tmp_path) as hub:
        base = root_commit(hub, {"src/trap.txt": TRAP})

        handoff = handle(action_for("text.replace@1", ENDLESS, base), context_in(tmp_path, hub))

    assert handoff.outcome is Outcome.FAILED
    assert handoff.error is not None
    assert handoff.error.code == "TooSlowError"
    assert "'(a+)+$' took longer than 0.2 s of processor time on src/trap.txt" in handoff.error.message


def test_outside_the_main_thread_there_is_no_timer_and_the_work_is_done() -> None:
    done: list[object] = []
    given = {"find": "a+", "replace": "b", "regex": True}
    thread = threading.Thread(
        target=lambda: done.append(run(TextReplace(), given, {"a.txt": b"aaa\n"}).sites)
    )

    thread.start()
    thread.join(30)

    assert done == [1]

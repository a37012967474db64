"""JSON that keeps what git keeps: names that are not UTF-8."""

import pytest
from pydantic import ValidationError

from schemas.handoff import Finding
from schemas.lossless import dump_json, load_json, readable
from supervisor.saga import events as ev
from supervisor.saga.events import read_event, write_event
from supervisor.saga.state import Refusal

ODD = "caf\udce9.py"


@pytest.mark.parametrize("path", ["a.py", "naïve ✓.py", ODD, "\udc80\udcff", 'tab\t"quote"\\u'])
def test_a_model_comes_back_as_it_was(path: str) -> None:
    finding = Finding(gate="scope", text=f"{path} is outside", path=path)

    assert load_json(Finding, dump_json(finding)) == finding


def test_what_is_utf_8_stays_readable() -> None:
    assert '"naïve"' in dump_json(Finding(gate="x", text="naïve")).decode()


@pytest.mark.parametrize("data", [b"", b"{}", b'{"gate": "\\ud800"}', b"[1]"])
def test_what_is_no_such_model_is_refused(data: bytes) -> None:
    with pytest.raises(ValidationError):
        load_json(Finding, data)


def test_an_event_about_such_a_name_is_recorded_and_read_back() -> None:
    event = ev.StepNarrowed(at=1, step="one.s0", refusals=(Refusal(step="one.s0", reason="no", path=ODD),))

    assert read_event(*write_event(event)) == event


def test_a_name_for_people_has_the_odd_bytes_written_out() -> None:
    assert readable(ODD) == "caf\\udce9.py"
    assert readable("naïve") == "naïve"

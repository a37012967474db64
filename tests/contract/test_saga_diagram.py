"""The diagram in ARCHITECTURE.md is the one that the tables print."""

from pathlib import Path

from supervisor.saga.moves import diagram

PAGE = Path(__file__).parents[2] / "ARCHITECTURE.md"


def test_the_diagram_is_what_the_tables_say() -> None:
    drawn = PAGE.read_text("utf-8").partition("```mermaid\n")[2].partition("```")[0]

    assert drawn == diagram(), "print it with `python -m supervisor.saga.moves`"

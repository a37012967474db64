"""Builders for cases under review, without a hub: for gates that only look at bytes."""

from typing import Any, cast

from reviewer.case import Case, Change
from schemas.scope import Reach
from schemas.words import ChangeKind
from workspace.hub import Hub


def edit(
    before: bytes | None,
    after: bytes | None,
    *,
    path: str = "a.py",
    old_mode: str = "100644",
    new_mode: str = "100644",
) -> Change:
    """One path with these bytes before and after; None where nothing stands."""
    kind = (
        ChangeKind.ADDED if before is None else ChangeKind.DELETED if after is None else ChangeKind.MODIFIED
    )
    return Change(
        path=path,
        kind=kind,
        old_mode=None if before is None else old_mode,
        new_mode=None if after is None else new_mode,
        before=before,
        after=after,
    )


def case_of(*changes: Change, allow: tuple[str, ...] = (), input: dict[str, Any] | None = None) -> Case:
    """A case with these changes, of which no gate asks the hub."""
    return Case(
        hub=cast(Hub, None),
        base="b" * 40,
        result="c" * 40,
        contract="rewrite.pattern@1",
        input=input or {},
        reach=Reach(),
        allow=frozenset(allow),
        changes=changes,
    )

"""The user's branch moved while the task ran: the order is done again on where it stands now.

Everything is applied, reviewed and tested again, never merged or rebased: a textual merge that is clean can be wrong.
What the roles remember of files that did not change makes the second time short.
"""

from dataclasses import dataclass, replace

from rolecall.client.order import Order, branch_for
from rolecall.client.phrases import amount, short
from schemas.clock import new_id
from workspace.source import Base, Source

# Who pushes more often than a task takes would never get a branch.
MOST_TIMES = 3


@dataclass(frozen=True, slots=True)
class Moved:
    """A branch that stands elsewhere than where the task began; `commits` counts what is new in it."""

    ref: str
    old: str
    new: str
    commits: int

    def sentence(self) -> str:
        """What happened, for people."""
        how = f"{amount(self.commits, 'commit')} further" if self.commits else "elsewhere"
        return f"{self.ref} is {how} now ({self.old[:12]} → {self.new[:12]})"


def moved_since(source: Source, base: Base) -> Moved | None:
    """How the branch moved since it was at the base; None if it did not, is gone, or was no branch."""
    tip = source.branch_tip(base.ref)
    if tip is None or tip == base.commit:
        return None
    return Moved(base.ref, base.commit, tip, source.commits_between(base.commit, tip))


def order_again(order: Order, moved: Moved) -> Order:
    """The same order on the new commit, with an id of its own; a branch's name that was ours gets the new id."""
    task, old, source = new_id(), order.request, order.source
    was_ours = old.branch == branch_for(order.recipe.recipe, order.task)
    changes = {
        "base": moved.new,
        "branch": branch_for(order.recipe.recipe, task) if was_ours else old.branch,
        "follows": order.task,
        "left_out": source.left_out() if source.resolve().ref == moved.ref else (),
    }
    return replace(order, task=task, request=old.model_copy(update=changes))


def announcement(moved: Moved, order: Order) -> str:
    """What is said before it is done again."""
    return f"{moved.sentence()}: task {short(order.task)} is done again there, reviewed and tested again."


def remark(moved: Moved) -> str:
    """What is said where it is not done again."""
    return f"{moved.sentence()}; the branch begins where it was. Merge it, or run the refactor again."

"""A first-in-first-out queue that never changes: pushing and popping give a new one in O(log n)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from immutables import Map


@dataclass(frozen=True, slots=True)
class Fifo:
    """Keys in order of arrival. `first` and `next` number the ends; `items` holds what lies between."""

    items: "Map[int, str]" = field(default_factory=Map)
    first: int = 0
    next: int = 0

    def push(self, key: str) -> "Fifo":
        """The queue with `key` at the end."""
        return Fifo(self.items.set(self.next, key), self.first, self.next + 1)

    def drop_through(self, key: str) -> "Fifo":
        """The queue without everything up to the first `key`: what stood before it was found to be stale."""
        items = self.items
        for number in range(self.first, self.next):
            found = items[number]
            items = items.delete(number)
            if found == key:
                return Fifo(items, number + 1, self.next)
        return self

    def __iter__(self) -> Iterator[str]:
        return (self.items[number] for number in range(self.first, self.next))

    def __len__(self) -> int:
        return self.next - self.first

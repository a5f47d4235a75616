"""Concept groups: what belongs together because it cannot be told apart, and therefore must not be divided by a split."""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Groups(Generic[T]):
    """Disjoint sets of items that grow together."""

    def __init__(self, items: Iterable[T]):
        self._parent = {item: item for item in items}

    def root(self, item: T) -> T:
        """One member that stands for the whole group of `item`."""
        while self._parent[item] != item:
            self._parent[item] = self._parent[self._parent[item]]
            item = self._parent[item]
        return item

    def join(self, first: T, second: T) -> None:
        """Make one group of the groups of two items."""
        self._parent[self.root(second)] = self.root(first)

    def join_equal(self, labelled: Iterable[tuple[Hashable, T]]) -> None:
        """Join all items that share a label."""
        seen: dict[Hashable, T] = {}
        for label, item in labelled:
            self.join(seen.setdefault(label, item), item)

    def groups(self) -> list[list[T]]:
        """Every group, in the order of their first items; items in the order they were given."""
        members: dict[T, list[T]] = {}
        for item in self._parent:
            members.setdefault(self.root(item), []).append(item)
        return list(members.values())

"""How many requests a process has in flight: fewer when the store asks to slow down, more again as it answers.

Additive increase, multiplicative decrease, as in TCP congestion control (Chiu and Jain, "Analysis of the increase and decrease
algorithms for congestion avoidance in computer networks", 1989): many clients that share a store each settle near their part.
"""

import contextlib
import functools
import threading
from collections.abc import Iterator

CONNECTIONS = 32
"""Requests that a process has in flight at most, to one endpoint."""


class Limiter:
    """Lets at most `limit` requests run at once; thread-safe.

    Args:
        ceiling: where the limit begins, and what it never exceeds.
    """

    def __init__(self, ceiling: int):
        self._ceiling = ceiling
        self._limit = float(ceiling)
        self._flying = 0
        self._cuts = 0
        self._changed = threading.Condition()

    @property
    def limit(self) -> int:
        """Requests that may be in flight now."""
        return int(self._limit)

    @contextlib.contextmanager
    def slot(self) -> Iterator[int]:
        """One request, once there is room for it; gives what :meth:`throttled` wants to know of it."""
        with self._changed:
            self._changed.wait_for(lambda: self._flying < self.limit)
            self._flying += 1
            cuts = self._cuts
        try:
            yield cuts
        finally:
            with self._changed:
                self._flying -= 1
                self._changed.notify()

    def throttled(self, cuts: int) -> None:
        """The store refused a request as one too many: halve the limit.

        Requests that were already in flight when it was halved count for nothing: they tell of the former limit.
        """
        with self._changed:
            if cuts == self._cuts:
                self._limit = max(1.0, self._limit / 2)
                self._cuts += 1

    def succeeded(self) -> None:
        """A request was answered: as many answers as the limit allows at once raise it by one."""
        with self._changed:
            before = self.limit
            self._limit = min(float(self._ceiling), self._limit + 1 / self._limit)
            if self.limit > before:
                self._changed.notify()


@functools.cache
def limiter_of(endpoint: str | None) -> Limiter:
    """The limiter that all users of an endpoint in this process share."""
    return Limiter(CONNECTIONS)

"""Numbers that were published, which stand beside ours and are marked as of other data."""

from dataclasses import dataclass

CHANCE = "chance"
"""The row of what needs no training."""
PAPER = "paper, other data"
"""How every published number is called."""


@dataclass(frozen=True)
class Published:
    """A published score: between `low` and `high`, which are equal where it is known."""

    low: float
    high: float

    def __str__(self) -> str:
        low, high = f"{100 * self.low:.1f}", f"{100 * self.high:.1f}"
        return low if low == high else f"{low}–{high}"


def percent(low: float, high: float | None = None) -> Published:
    """As it is printed: a number out of 100, or two between which it lies."""
    return Published(low / 100, (low if high is None else high) / 100)

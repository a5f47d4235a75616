"""Accuracy of classes and answers."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class Accuracy(NamedTuple):
    """How many answers are right."""

    value: float
    chance: float
    """What the one answer gets that is right most often: the share of the largest class."""
    unseen: int
    """Items whose right answer is none of those that can be given; they count as wrong."""
    items: int


def accuracy(given: Sequence[str], right: Sequence[str], known: Sequence[str]) -> Accuracy:
    """Share of items whose given answer is the right one, to the letter.

    Args:
        given: the answer to each item.
        right: the right one.
        known: answers that can be given.

    Raises:
        ValueError: no items, or not as many answers as items.
    """
    if not right or len(given) != len(right):
        raise ValueError(f"{len(given)} answers to {len(right)} items")
    there, counts = set(known), Counter(right)
    largest = max((count for answer, count in counts.items() if answer in there), default=0)
    return Accuracy(
        sum(one == other for one, other in zip(given, right, strict=True)) / len(right),
        largest / len(right),
        sum(count for answer, count in counts.items() if answer not in there),
        len(right),
    )

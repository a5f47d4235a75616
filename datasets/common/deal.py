"""Drawing by lot, reproducibly: who goes to which split, and which image speaks which language."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def lot(seed: int, *purpose: str) -> random.Random:
    """A random generator for one purpose, independent of every other draw; equal on every machine and Python version."""
    return random.Random(":".join([str(seed), *purpose]))


def choose_groups(groups: Sequence[list[T]], wanted: int, draw: random.Random) -> list[list[T]]:
    """Whole groups, by lot, that together hold `wanted` items (or as many as whole groups allow without exceeding it)."""
    chosen: list[list[T]] = []
    free = wanted
    for index in draw.sample(range(len(groups)), len(groups)):
        if len(groups[index]) <= free:
            chosen.append(groups[index])
            free -= len(groups[index])
    return chosen


class LanguageDeal:
    """Deals languages by lot such that every language is dealt equally often."""

    def __init__(self, languages: Sequence[str], draw: random.Random):
        self._languages = list(languages)
        self._draw = draw
        self._dealt: Counter[str] = Counter()

    def deal(self, count: int, among: Sequence[str]) -> list[str]:
        """`count` languages of `among`, without repetition as long as there are enough; those dealt least so far come first.

        Ties are broken by lot, and the order of the result is random. Empty when `among` is.
        """
        result: list[str] = []
        while among and len(result) < count:
            order = [language for language in self._languages if language in among]
            self._draw.shuffle(order)
            order.sort(key=lambda language: self._dealt[language])
            hand = order[: count - len(result)]
            self._dealt.update(hand)
            result += hand
        self._draw.shuffle(result)
        return result

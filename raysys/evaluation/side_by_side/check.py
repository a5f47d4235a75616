"""Whether two systems stand to each other as they did in a paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from raysys.evaluation.naming import language_name
from raysys.evaluation.side_by_side.published import CHANCE
from raysys.evaluation.side_by_side.statistics import Summary, in_percent


@dataclass(frozen=True)
class Check:
    """Two systems on one metric of one split."""

    better: str
    """Label of the system that should be better."""
    worse: str
    first: Summary | None
    """Of the one that should be better; None where it has no scores."""
    second: Summary | None
    """Of the other. Chance has the same value for every seed."""
    by_language: Sequence[tuple[str, float]] = ()
    """(query language, difference of the means), the greatest disappointment first; empty where it is not known."""
    low: bool = False
    """The score is the better the lower it is."""
    score: str = ""
    """Name of the score, where a page checks several."""

    @property
    def expected(self) -> str:
        """What is expected, as a formula."""
        return (f"{self.score}: " if self.score else "") + f"{self.better} {'<' if self.low else '>'} {self.worse}"

    @property
    def verdict(self) -> Literal["holds", "differs", "unknown"]:
        """Whether the means stand as expected; equal means do not."""
        if self.difference is None:
            return "unknown"
        return "holds" if self.difference > 0 else "differs"

    @property
    def difference(self) -> float | None:
        """Of the means; positive as expected."""
        if not (self.first and self.second):
            return None
        return (self.second.mean - self.first.mean) if self.low else (self.first.mean - self.second.mean)

    @property
    def wins(self) -> tuple[int, int]:
        """Seeds in which the first is better, of those that both have."""
        if not (self.first and self.second):
            return 0, 0
        both = [seed for seed in self.first.values if seed in self.second.values]
        sign = -1 if self.low else 1
        return sum(sign * self.first.values[seed] > sign * self.second.values[seed] for seed in both), len(both)

    @property
    def within_deviation(self) -> bool:
        """Whether the difference of the means is no greater than the deviation of such a difference, √(s₁² + s₂²)."""
        spreads = [summary.deviation for summary in (self.first, self.second) if summary and summary.deviation is not None]
        return bool(spreads) and self.difference is not None and abs(self.difference) <= sum(s * s for s in spreads) ** 0.5

    def sentence(self) -> str:
        """The verdict in words, with the numbers."""
        before, where, unlike = f"{self.score}: " if self.score else "", *(("below", "more") if self.low else ("above", "less"))
        if not (self.first and self.second and self.difference is not None):
            lacking = " and ".join(name for name, summary in ((self.better, self.first), (self.worse, self.second)) if summary is None)
            return f"{before}{self.better} {where} {self.worse}: cannot be told, there are no scores of {lacking}."
        points = 100 * self.difference
        size = f"{abs(points):.1f}" if abs(points) >= 0.05 else "less than 0.1"
        other = f"{100 * self.second.mean:.1f}" if self.worse == CHANCE else in_percent(self.second)
        numbers = f"{in_percent(self.first)} against {other}"
        wins, of = self.wins
        seeds = f"better in {wins} of {of} seeds" if of else "no seed that both were trained with"
        unsure = "; the difference is within the deviation over seeds" if self.within_deviation else ""
        if points > 0:
            like = "less" if self.low else "more"
            return f"{before}{self.better} {where} {self.worse}: {numbers}, {size} points {like}, {seeds}{unsure}."
        how = "the same" if points == 0 else f"{size} points {unlike}"
        return f"{before}{self.better} is not {where} {self.worse}: {numbers}, {how}, {seeds}{unsure}.{self._languages()}"

    def _languages(self) -> str:
        worse = [(language, points) for language, points in self.by_language if points < 0]
        if not worse:
            return ""
        named = ", ".join(f"{language_name(language)} −{-100 * points:.1f}" for language, points in worse[:3])
        return f" It is worse from {len(worse)} of {len(self.by_language)} languages, most from {named}."

"""Whether the systems stand in the order that the paper found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from raysys.evaluation.comparison.data import Comparison
from raysys.evaluation.comparison.paper import CHANCE, EXPECTED
from raysys.evaluation.comparison.statistics import Summary
from raysys.evaluation.naming import language_name


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

    @property
    def verdict(self) -> Literal["holds", "differs", "unknown"]:
        """Whether the means stand as expected; equal means do not."""
        if self.difference is None:
            return "unknown"
        return "holds" if self.difference > 0 else "differs"

    @property
    def difference(self) -> float | None:
        """Of the means; positive as expected."""
        return self.first.mean - self.second.mean if self.first and self.second else None

    @property
    def wins(self) -> tuple[int, int]:
        """Seeds in which the first is better, of those that both have."""
        if not (self.first and self.second):
            return 0, 0
        both = [seed for seed in self.first.values if seed in self.second.values]
        return sum(self.first.values[seed] > self.second.values[seed] for seed in both), len(both)

    @property
    def within_deviation(self) -> bool:
        """Whether the difference of the means is no greater than the deviation of such a difference, √(s₁² + s₂²)."""
        spreads = [summary.deviation for summary in (self.first, self.second) if summary and summary.deviation is not None]
        return bool(spreads) and self.difference is not None and abs(self.difference) <= sum(s * s for s in spreads) ** 0.5

    def sentence(self) -> str:
        """The verdict in words, with the numbers."""
        if not (self.first and self.second):
            lacking = " and ".join(name for name, summary in ((self.better, self.first), (self.worse, self.second)) if summary is None)
            return f"{self.better} above {self.worse}: cannot be told, there are no scores of {lacking}."
        points = 100 * (self.first.mean - self.second.mean)
        size = f"{abs(points):.1f}" if abs(points) >= 0.05 else "less than 0.1"
        other = f"{100 * self.second.mean:.1f}" if self.worse == CHANCE else in_percent(self.second)
        numbers = f"{in_percent(self.first)} against {other}"
        wins, of = self.wins
        seeds = f"better in {wins} of {of} seeds" if of else "no seed that both were trained with"
        unsure = "; the difference is within the deviation over seeds" if self.within_deviation else ""
        if points > 0:
            return f"{self.better} above {self.worse}: {numbers}, {size} points more, {seeds}{unsure}."
        how = "the same" if points == 0 else f"{size} points less"
        return f"{self.better} is not above {self.worse}: {numbers}, {how}, {seeds}{unsure}.{self._languages()}"

    def _languages(self) -> str:
        worse = [(language, points) for language, points in self.by_language if points < 0]
        if not worse:
            return ""
        named = ", ".join(f"{language_name(language)} −{-100 * points:.1f}" for language, points in worse[:3])
        return f" It is worse from {len(worse)} of {len(self.by_language)} languages, most from {named}."


def in_percent(summary: Summary) -> str:
    """`31.2 ± 0.8`; without deviation for a single seed."""
    mean, deviation = f"{100 * summary.mean:.1f}", summary.deviation
    return mean if deviation is None else f"{mean} ± {100 * deviation:.1f}"


def check_order(data: Comparison, split: str, metric: str) -> list[Check]:
    """Every expected pair, on one metric of one split. Systems that are not on the page at all are left out."""
    checks = []
    for better, worse in EXPECTED:
        first, second = data.row(better), data.row(worse)
        if first is None or (second is None and worse != CHANCE):
            continue
        summary = first.summary(split, metric)
        chance = data.chance(split, metric)
        if second is None:
            known = summary is not None and chance is not None
            other = Summary(dict.fromkeys(summary.values, chance or 0.0)) if known and summary else None
            checks.append(Check(first.label, CHANCE, summary, other))
        else:
            by_language = _by_language(data, split, metric, better, worse)
            checks.append(Check(first.label, second.label, summary, second.summary(split, metric), by_language))
    return checks


def _by_language(data: Comparison, split: str, metric: str, better: str, worse: str) -> list[tuple[str, float]]:
    """Differences of the means by query language, of metrics that are kept by language."""
    first, second = data.row(better), data.row(worse)
    assert first is not None
    assert second is not None
    languages = dict.fromkeys(tag for results in first.seeds.values() for tag in results.get(split, {}).get("languages", ()))
    found = []
    for language in languages:
        name = f"eval/{language}/{metric.removeprefix('eval/')}"
        one, two = first.summary(split, name), second.summary(split, name)
        if one and two:
            found.append((language, one.mean - two.mean))
    return sorted(found, key=lambda entry: entry[1])

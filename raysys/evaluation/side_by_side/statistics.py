"""Mean and deviation of a score over the seeds of a system."""

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """A score over seeds."""

    values: Mapping[int, float]
    """Seed → value; at least one."""

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return math.fsum(self.values.values()) / len(self.values)

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the sample, √(Σ (x − mean)² / (n − 1)); None for a single seed."""
        if len(self.values) < 2:
            return None
        mean = self.mean
        return math.sqrt(math.fsum((value - mean) ** 2 for value in self.values.values()) / (len(self.values) - 1))

    @property
    def high(self) -> float:
        """The greatest number that a figure has to show: a value, or the end of the deviation."""
        return max(*self.values.values(), self.mean + (self.deviation or 0.0))


def summarise(values: Mapping[int, float | None]) -> Summary | None:
    """Of the seeds that have a value; None where none has."""
    known = {seed: float(value) for seed, value in values.items() if value is not None}
    return Summary(known) if known else None


def in_percent(summary: Summary) -> str:
    """`31.2 ± 0.8`; without deviation for a single seed."""
    mean, deviation = f"{100 * summary.mean:.1f}".replace("-", "−"), summary.deviation
    return mean if deviation is None else f"{mean} ± {100 * deviation:.1f}"

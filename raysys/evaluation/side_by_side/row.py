"""One system in the tables of a page, and what all such pages are made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raysys.evaluation.side_by_side.statistics import Summary, summarise

Results = Mapping[str, Mapping[str, Any]]
"""Split → its scores: `metrics` and `chance`, name → value, and what figures need."""


@dataclass(frozen=True)
class Row:
    """One system, trained with several seeds."""

    name: str
    label: str
    seeds: Mapping[int, Results] = field(default_factory=dict)
    """Seed → scores of the run that was trained with it; runs that are lacking are not there."""
    wanted: int = 0
    """How many seeds it should have; 0: as many as it has."""
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """Setting → (in the paper's system, in this one), of rows beyond the paper."""

    def summary(self, split: str, metric: str) -> Summary | None:
        """A metric of one split over the seeds; None where no run has it."""
        return summarise({seed: results.get(split, {}).get("metrics", {}).get(metric) for seed, results in self.seeds.items()})

    def chance(self, split: str, metric: str) -> float | None:
        """What is reached there without training."""
        found = (results.get(split, {}).get("chance", {}).get(metric) for results in self.seeds.values())
        return next((value for value in found if value is not None), None)

    def matrix(self, split: str, name: str) -> tuple[list[str], list[list[float | None]]] | None:
        """Languages, and the mean over seeds of a matrix [query][target]; None where no run has it. Cells without a query are None."""
        found = [
            (results[split]["languages"], results[split]["matrices"][name])
            for results in self.seeds.values()
            if name in results.get(split, {}).get("matrices", {})
        ]
        if not found:
            return None
        languages = list(found[0][0])
        values = np.array([matrix for tags, matrix in found if list(tags) == languages], dtype=float)  # None becomes NaN
        mean = values.mean(axis=0)
        return languages, [[None if np.isnan(value) else float(value) for value in row] for row in mean]

    @property
    def note(self) -> str:
        """Which seeds are lacking, in words; empty where none is."""
        if len(self.seeds) >= self.wanted:
            return ""
        return f"{len(self.seeds)} of {self.wanted} seeds" if self.seeds else "not trained"


@dataclass(frozen=True)
class SideBySide:
    """Systems side by side. All of it is text or numbers from elsewhere and is escaped; an empty field leaves its part out."""

    title: str
    summary: str = ""
    facts: Sequence[tuple[str, str]] = ()
    """Short label–value pairs under the title."""
    rows: Sequence[Row] = ()
    """The paper's systems, in the order to be shown."""
    also: Sequence[Row] = ()
    """Runs with options beyond the paper."""
    missing: Sequence[tuple[str, str]] = ()
    """(run, why) of each run that is not there or has no scores."""
    commands: Sequence[tuple[str, str]] = ()
    """(what it does, command line)."""

    @property
    def shown(self) -> list[Row]:
        """All rows that may have scores."""
        return [*self.rows, *self.also]

    @property
    def splits(self) -> list[str]:
        """Everything that was scored, in order of first occurrence."""
        return list(dict.fromkeys(split for row in self.shown for results in row.seeds.values() for split in results))

    def row(self, name: str) -> Row | None:
        """The system of that name, if it is shown."""
        return next((row for row in self.rows if row.name == name), None)

    def chance(self, split: str, metric: str) -> float | None:
        """What is reached without training."""
        found = (row.chance(split, metric) for row in self.shown)
        return next((value for value in found if value is not None), None)

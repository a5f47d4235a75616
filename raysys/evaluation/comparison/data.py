"""What the page of a comparison is made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raysys.evaluation.comparison.statistics import Summary, summarise
from raysys.evaluation.examples import TranslationExample
from raysys.evaluation.word_scores import WORDS

Results = Mapping[str, Mapping[str, Any]]
"""Test split → what `scores.score` returns: items, languages, metrics, chance, matrices."""


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
    """Setting → (in Globetrotter's run, in this one), of rows beyond the paper."""

    def summary(self, split: str, metric: str) -> Summary | None:
        """A metric of one split over the seeds; None where no run has it."""
        return summarise({seed: results.get(split, {}).get("metrics", {}).get(metric) for seed, results in self.seeds.items()})

    def chance(self, split: str, metric: str) -> float | None:
        """What a random ranking gets there."""
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


@dataclass(frozen=True)
class FoundWord:
    """The word of one language that lies nearest to a word of another."""

    language: str
    word: str
    right: bool
    expected: str = ""
    """A right translation, where the nearest word is none."""


@dataclass(frozen=True)
class WordExample:
    """A word and what was found for it."""

    language: str
    word: str
    found: Sequence[FoundWord]


@dataclass(frozen=True)
class Comparison:
    """Everything that the page shows. All of it is text or numbers from elsewhere and is escaped; an empty field leaves its part out."""

    title: str
    summary: str = ""
    facts: Sequence[tuple[str, str]] = ()
    """Short label–value pairs under the title."""
    rows: Sequence[Row] = ()
    """The paper's systems, in the order to be shown."""
    references: Sequence[Row] = ()
    """What stands beside them without a place in their order: untrained networks, encoders that others trained."""
    also: Sequence[Row] = ()
    """Runs with options beyond the paper."""
    human: Sequence[str] = ()
    """Splits whose captions were translated by people."""
    example_of: str = ""
    """Whose examples are shown, in words."""
    translations: Mapping[str, Sequence[TranslationExample]] = field(default_factory=dict)
    """Test split → examples."""
    words: Sequence[WordExample] = ()
    failures: Sequence[TranslationExample] = ()
    missing: Sequence[tuple[str, str]] = ()
    """(run, why) of each run that is not there or has no scores."""
    commands: Sequence[tuple[str, str]] = ()
    """(what it does, command line)."""

    @property
    def splits(self) -> list[str]:
        """Test splits of captions, in order of first occurrence."""
        runs = [results for row in [*self.rows, *self.references, *self.also] for results in row.seeds.values()]
        return [split for split in dict.fromkeys(split for results in runs for split in results) if split != WORDS]

    def row(self, name: str) -> Row | None:
        """The system of that name, if it is shown."""
        return next((row for row in self.rows if row.name == name), None)

    def chance(self, split: str, metric: str) -> float | None:
        """What a random ranking gets."""
        found = (row.chance(split, metric) for row in [*self.rows, *self.references, *self.also])
        return next((value for value in found if value is not None), None)

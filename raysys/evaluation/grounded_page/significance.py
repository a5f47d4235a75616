"""Stars of Table 3: which rows differ from the best of the paper's own models."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from raysys.evaluation.grounded_page import paper
from raysys.evaluation.grounded_page.data import SENTEVAL, GroundedComparison
from raysys.evaluation.senteval import significance
from raysys.evaluation.side_by_side.row import Row

LEVEL = 0.05
"""A row gets a star below this probability."""


@dataclass(frozen=True)
class Stars:
    """One task."""

    best: str = ""
    """The best of the scenarios by mean accuracy over seeds; empty where none has scores."""
    p: Mapping[str, float] = field(default_factory=dict)
    """Row → probability that it and the best are right equally often, of rows that have a seed in common with it."""

    def starred(self, row: str) -> bool:
        """Whether the row differs significantly."""
        return self.p.get(row, 1.0) < LEVEL


def stars(data: GroundedComparison, task: str) -> Stars:
    """The paired test of every row of the paper against the best scenario on one task."""
    metric = paper.task_metric(task)
    means = {
        name: summary.mean
        for name in paper.SCENARIOS
        if (row := data.row(name)) is not None and (summary := row.summary(SENTEVAL, metric)) is not None
    }
    if not means:
        return Stars()
    best = max(means, key=lambda name: means[name])
    reference = data.row(best)
    assert reference is not None
    found = {row.name: _combined(row, reference, task) for row in data.rows if row.name != best}
    return Stars(best, {name: p for name, p in found.items() if p is not None})


def _combined(row: Row, best: Row, task: str) -> float | None:
    """p over the seeds that both rows have; None where there are none.

    The seeds are tested on the same examples, so that their probabilities are not independent: twice the median is a valid one whatever
    the dependence (Rüger 1978). One seed keeps its own.
    """
    found = []
    for seed in row.seeds.keys() & best.seeds.keys():
        one, two = (_correct(which, seed, task) for which in (row, best))
        if one is not None and two is not None and len(one) == len(two):
            found.append(significance(one, two))
    if not found:
        return None
    return found[0] if len(found) == 1 else min(1.0, 2 * statistics.median(found))


def _correct(row: Row, seed: int, task: str) -> np.ndarray | None:
    """bool per test example."""
    marks: str | None = row.seeds[seed].get(SENTEVAL, {}).get("correct", {}).get(task)
    return None if marks is None else np.frombuffer(marks.encode("ascii"), dtype=np.uint8) == ord("1")

"""Semantic relatedness: how the cosine of two sentences agrees with what people say (STS 2012–2016, the STS benchmark, SICK)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from raysys.evaluation.ranking import unit_vectors
from raysys.evaluation.rated_pairs import Sets

Encode = Callable[[Sequence[str]], np.ndarray]
"""Sentences → float [n, d]; need not be normalised."""


@dataclass(frozen=True)
class Relatedness:
    """Correlations by name; random similarities get 0 on average."""

    metrics: dict[str, float]
    """`eval/<name>_spearman`, `eval/<name>_pearson`. For a set of several files the mean over them, which SentEval calls `mean`;
    with `_weighted_` before the measure the mean weighted by their pairs, its `wmean`."""
    lacking: dict[str, str] = field(default_factory=dict)

    @property
    def chance(self) -> dict[str, float]:
        return dict.fromkeys(self.metrics, 0.0)


def score_sets(encode: Encode, sets: Sets) -> Relatedness:
    """Spearman's and Pearson's correlation between cosines and ratings, for every set.

    `encode` is called once, with the distinct sentences. Equal cosines are exactly equal, whatever the order of summation. A
    correlation with something constant is 0.

    Raises:
        RunFailed: vectors that are not finite.
    """
    texts = list(dict.fromkeys(text for pairs in sets.pairs.values() for text in pairs.sentences))
    row = {text: number for number, text in enumerate(texts)}
    vectors = np.asarray(encode(texts)) if texts else np.zeros((0, 1))
    if len(vectors) != len(texts):
        raise ValueError(f"{len(vectors)} vectors for {len(texts)} sentences")
    found = {}
    for name, pairs in sets.pairs.items():
        first, second = (unit_vectors(vectors[[row[text] for text in side]], name).numpy() for side in (pairs.first, pairs.second))
        found[name] = correlations((first * second).sum(axis=1), pairs.ratings)
    metrics = {f"eval/{name}_{measure}": value for name, values in found.items() for measure, value in values.items()}
    for name, parts in sets.means.items():
        sizes = [len(sets.pairs[part]) for part in parts]
        for measure in ("spearman", "pearson"):
            values = [found[part][measure] for part in parts]
            metrics[f"eval/{name}_{measure}"] = float(np.mean(values))
            metrics[f"eval/{name}_weighted_{measure}"] = float(np.average(values, weights=sizes))
    return Relatedness(metrics, sets.lacking)


def correlations(scores: np.ndarray, ratings: np.ndarray) -> dict[str, float]:
    """`spearman` and `pearson` of two float64 [n]; 0 where one of them is constant."""
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return {"spearman": 0.0, "pearson": 0.0}
    return {"spearman": float(stats.spearmanr(scores, ratings).statistic), "pearson": float(stats.pearsonr(scores, ratings).statistic)}

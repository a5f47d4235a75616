"""What a random ranking scores, in closed form: every score of this package stands beside it."""

import math

import numpy as np
import numpy.typing as npt

from raysys.evaluation.ranking import hit_probability


def recall(candidates: npt.ArrayLike, k: int, right: npt.ArrayLike = 1) -> np.ndarray:
    """Expected recall@k of a random ranking: 1 − C(candidates − right, k) / C(candidates, k).

    Args:
        candidates: how many are ranked.
        right: how many of them count as right (more than one where strings or images are equal).
    """
    return hit_probability(candidates, right, np.minimum(k, candidates))


def sentence_translation(candidates: npt.ArrayLike, translations: npt.ArrayLike) -> np.ndarray:
    """Expected sentence-translation score of a random ranking: `translations` / `candidates`.

    With n sentences in each of M languages it is (M − 1) / (n (M − 1)) = 1 / n: each true translation is among the top M − 1
    of n (M − 1) candidates with that probability.
    """
    return np.asarray(translations, np.float64) / np.asarray(candidates, np.float64)


def k_occurrence_skewness(sentences: int, queries: int, k: int) -> float:
    """Skewness of N_k where every query draws its k nearest at random.

    N_k is then binomial with p = k / sentences, and its skewness (1 − 2p) / √(queries · p (1 − p)).
    """
    p = k / sentences
    return (1 - 2 * p) / math.sqrt(queries * p * (1 - p))


def anti_hubs(sentences: int, queries: int, k: int) -> float:
    """Share of sentences that no query draws: (1 − k / sentences)^queries."""
    return (1 - k / sentences) ** queries


def largest_k_occurrence(sentences: int, queries: int, k: int) -> float:
    """Expected largest N_k, Σ_x [1 − F(x)^sentences] with the binomial F, as if the sentences' counts were independent.

    They are not quite (all sum to k · queries), which makes the true value a little smaller.
    """
    p = k / sentences
    x = np.arange(1, queries + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log((queries - x + 1) / x) + math.log(p) - math.log1p(-p))]) + queries * math.log1p(-p)
    below = np.minimum(np.cumsum(np.exp(logs)), 1.0)
    return float((1 - below**sentences).sum())

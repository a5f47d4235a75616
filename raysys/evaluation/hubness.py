"""Hubness: sentences that are near to everything, and those that are near to nothing (Radovanović et al. 2010).

In a space of many dimensions a few points turn up among the nearest neighbours of a great many others and crowd out the right
ones. The k-occurrence N_k of a sentence counts the queries that have it among their k nearest; here the candidates are the
sentences of one language and the queries those of all other languages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from raysys.evaluation import chance
from raysys.evaluation.ranking import evenly, similarities
from raysys.evaluation.translation import Sentences

K = 10
_CHUNK_BYTES = 16 << 20  # of similarities held at a time


@dataclass(frozen=True)
class Hubness:
    """How evenly the sentences of one language are found; with what random rankings give."""

    queries: int
    """Sentences of the other languages, Q."""
    occurrences: np.ndarray = field(repr=False)
    """float64 [n]: expected N_k of each distinct sentence, in order of first occurrence; they sum to k · Q."""
    skewness: float
    """E[(N_k − μ)³] / E[(N_k − μ)²]^1.5 over the sentences, μ = k · Q / n: 0 where all are found equally often, large with hubs."""
    skewness_chance: float
    anti_hubs: float
    """Expected share of sentences that are among the k nearest of no query."""
    anti_hubs_chance: float
    largest: float
    """Largest of `occurrences`."""
    largest_chance: float


def hubness(
    vectors: Mapping[str, np.ndarray], texts: Mapping[str, Sequence[str | None]], *, k: int = K, limit: int = 1000
) -> dict[str, Hubness]:
    """Hubness of every language as target.

    Equal strings of a language are one sentence, as candidate and as query. Ties are put in random order, anew for every query,
    and the figures are expectations over these orders: `anti_hubs` exactly, `skewness` as the ratio of the expected moments.
    Constant vectors therefore get exactly what random rankings get. `largest` is the largest of the expected N_k.

    Args:
        vectors: float [n, d] per language; need not be normalised.
        texts: the strings; None where an item lacks the language.
        k: nearest sentences that count.
        limit: most items, evenly spaced: the work is quadratic in them.

    Returns:
        Target language → hubness; without languages of at most k sentences, all of which every query finds.

    Raises:
        ValueError: lengths that differ.
        RunFailed: vectors that are not finite.
    """
    banks = {}
    for language in vectors:
        rows = evenly(np.arange(len(texts[language])), limit)
        if len(vectors[language]) != len(texts[language]):
            raise ValueError(f"{language}: {len(vectors[language])} vectors for {len(texts[language])} texts")
        banks[language] = Sentences(language, np.asarray(vectors[language])[rows], [texts[language][row] for row in rows])
    found = {}
    for language, bank in banks.items():
        others = [other for name, other in banks.items() if name != language and len(other)]
        if len(bank) > k and others:
            found[language] = _of_target(bank, others, k)
    return found


def _of_target(bank: Sentences, others: Sequence[Sentences], k: int) -> Hubness:
    n, queries = len(bank), sum(map(len, others))
    counts = _Occurrences(n, k)
    rows = max(1, _CHUNK_BYTES // (8 * n))
    for other in others:
        for start in range(0, len(other), rows):
            counts.add(similarities(other.matrix[start : start + rows], bank.matrix).numpy())
    return Hubness(
        queries=queries,
        occurrences=counts.mean,
        skewness=counts.skewness(queries),
        skewness_chance=chance.k_occurrence_skewness(n, queries, k),
        anti_hubs=float(np.exp(counts.log_missed).mean()),
        anti_hubs_chance=chance.anti_hubs(n, queries, k),
        largest=float(counts.mean.max()),
        largest_chance=chance.largest_k_occurrence(n, queries, k),
    )


class _Occurrences:
    """N_k of n sentences as sums over queries of independent draws: 1 or 0, or between where sentences tie for the last places."""

    def __init__(self, n: int, k: int) -> None:
        self.k = k
        self.mean, self.variance, self.third = np.zeros(n), np.zeros(n), np.zeros(n)  # cumulants
        self.log_missed = np.zeros(n)
        """Logarithm of the probability that no query has drawn the sentence."""

    def add(self, scores: np.ndarray) -> None:
        """Count the queries of `scores`, float32 [q, n]."""
        n, k = scores.shape[1], self.k
        last = np.partition(scores, n - k, axis=1)[:, n - k, None]
        reached = scores >= last
        sure = np.count_nonzero(reached, axis=1) == k
        drawn = np.count_nonzero(reached[sure], axis=0)
        self.mean += drawn
        self.log_missed[drawn > 0] = -np.inf
        if not sure.all():
            self._add_tied(scores[~sure], last[~sure])

    def _add_tied(self, scores: np.ndarray, last: np.ndarray) -> None:
        above, level = scores > last, scores == last
        free = self.k - np.count_nonzero(above, axis=1)
        p = above + level * (free / np.count_nonzero(level, axis=1))[:, None]
        spread = p * (1 - p)
        self.mean += p.sum(axis=0)
        self.variance += spread.sum(axis=0)
        self.third += (spread * (1 - 2 * p)).sum(axis=0)
        with np.errstate(divide="ignore"):
            self.log_missed += np.log1p(-p).sum(axis=0)

    def skewness(self, queries: int) -> float:
        centre = self.k * queries / len(self.mean)
        apart = self.mean - centre
        second = float((apart**2 + self.variance).mean())
        third = float((apart**3 + 3 * apart * self.variance + self.third).mean())
        return third / second**1.5 if second > 1e-12 * centre**2 else 0.0

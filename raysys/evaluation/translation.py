"""Sentence translation by retrieval between any number of languages (Globetrotter, §5.2, Figures 5, 6 and 9)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from raysys.evaluation import chance
from raysys.evaluation.naming import script
from raysys.evaluation.ranking import codes, expected_hits, similarities, unit_vectors

KS = (1, 5, 10)
_ROWS, _SLAB = 256, 1 << 14  # queries and candidates in one product of matrices, whose float64 result is 32 MiB


@dataclass(frozen=True)
class SentenceTranslation:
    """Scores between M languages; matrices are [query language, target language], NaN where there is no query."""

    languages: tuple[str, ...]
    score: float
    """Share of a query's true translations among as many top candidates of all other languages, mean over queries."""
    chance: float
    share: np.ndarray
    """float64 [M, M]: how often the translation into the target language is among those top candidates (Fig. 9)."""
    share_chance: np.ndarray
    recall: dict[int, np.ndarray]
    """k → float64 [M, M]: recall@k among the sentences of the target language alone."""
    recall_chance: dict[int, np.ndarray]
    queries: np.ndarray
    """int64 [M, M]: sentences with a translation into the target language."""
    both_seen: "Subset | None" = None
    """Recall@1 of the pairs whose two strings both occurred in training."""
    some_unseen: "Subset | None" = None
    """Recall@1 of the pairs with at least one string that did not."""

    def mean_recall(self, k: int = 1) -> float:
        """Mean recall@k over the ordered language pairs, each pair weighing the same."""
        return _mean(self.recall[k])

    def mean_recall_chance(self, k: int = 1) -> float:
        """What a random ranking gets for :meth:`mean_recall`."""
        return _mean(self.recall_chance[k])

    def pair(self, query: str, target: str) -> tuple[int, int]:
        """The cell of a direction in every matrix."""
        return self.languages.index(query), self.languages.index(target)

    def non_latin_to_latin(self) -> np.ndarray:
        """bool [M, M]: directions from another script into Latin, where no cognate can help."""
        scripts = np.array([script(language) for language in self.languages])
        return ~np.isin(scripts, ["Latn", "Zyyy"])[:, None] & (scripts == "Latn")[None, :]

    def mean_over(self, mask: np.ndarray, k: int = 1) -> tuple[float, float]:
        """(recall@k, chance) over the directions of `mask` [M, M]; NaN where it is empty."""
        return _mean(np.where(mask, self.recall[k], np.nan)), _mean(np.where(mask, self.recall_chance[k], np.nan))


@dataclass(frozen=True)
class Subset:
    """Recall@1 over part of the (query, target language) pairs, every pair of sentences weighing the same."""

    recall: float
    chance: float
    pairs: int
    matrix: np.ndarray = field(repr=False)
    """float64 [M, M], NaN where the direction has no such pair."""
    matrix_chance: np.ndarray = field(repr=False)


class Sentences:
    """One language's sentences. Equal strings are one sentence: the vector of the first stands for all of them."""

    def __init__(self, language: str, vectors: np.ndarray, texts: Sequence[str | None]) -> None:
        if len(vectors) != len(texts):
            raise ValueError(f"{language}: {len(vectors)} vectors for {len(texts)} texts")
        self.code = codes(texts)
        _, first = np.unique(self.code[self.code >= 0], return_index=True)
        present = np.flatnonzero(self.code >= 0)
        self.matrix = unit_vectors(np.asarray(vectors)[present[first]], f"captions in {language}")
        self.copies = np.bincount(self.code[present], minlength=len(first))
        self.total = len(present)

    def __len__(self) -> int:
        return len(self.matrix)

    def count(self, mask: np.ndarray) -> np.ndarray:
        """Sentences, copies included, for bool [q, distinct strings] → int64 [q]."""
        if self.total == len(self):
            return np.count_nonzero(mask, axis=1)
        return (mask.astype(np.float32) @ self.copies.astype(np.float32)).astype(np.int64)  # exact below 2²⁴


def sentence_translation(
    vectors: Mapping[str, np.ndarray],
    texts: Mapping[str, Sequence[str | None]],
    *,
    seen: Mapping[str, np.ndarray] | None = None,
    ks: Sequence[int] = KS,
    chunk_bytes: int = 128 << 20,
) -> SentenceTranslation:
    """Rank every sentence's translations against all sentences of the other languages.

    The score (§5.2 of the paper): each sentence is a query; the candidates are the sentences of the other M − 1 languages; the
    share of its M − 1 true translations that are among the top M − 1 candidates, averaged over queries. Recall@k ranks the
    sentences of one target language alone. Ties count with the expected value of a random order, so that constant vectors score
    exactly chance.

    Strings that are equal within a language are the same sentence. For recall@k all n sentences of the target are candidates
    and every copy of the true translation counts as right. For the score, where the places are as few as the languages, copies
    are one candidate: otherwise they would push other languages' true translations out, and a perfect encoder could not reach 1.

    Args:
        vectors: float [n, d] per language; row i of every language belongs to the same item. Need not be normalised.
        texts: the strings; None where an item lacks the language. Such an item is left out of that language's pairs: it is
            neither query nor candidate there, and other languages' queries have one true translation less.
        seen: bool [n] per language: this item's string occurred in training. Adds `both_seen` and `some_unseen`.
        ks: the k of recall@k.
        chunk_bytes: bound for the block of similarities held at a time.

    Raises:
        ValueError: fewer than two languages, or lengths that differ.
        RunFailed: vectors that are not finite.
    """
    languages = tuple(vectors)
    if len(languages) < 2:
        raise ValueError(f"translation needs at least two languages, got {list(languages)}")
    if len({len(texts[language]) for language in languages}) != 1:
        raise ValueError("every language needs one text (or None) per item")
    banks = [Sentences(language, vectors[language], texts[language]) for language in languages]
    tally = _Tally(banks, ks)
    candidates = torch.cat([bank.matrix for bank in banks])
    rows = max(1, min(_ROWS, chunk_bytes // (4 * max(1, len(candidates)))))
    for a, bank in enumerate(banks):
        items = np.flatnonzero(bank.code >= 0)
        for start in range(0, len(items), rows):
            _score_chunk(tally, banks, candidates, a, items[start : start + rows])
    return tally.result(languages, seen)


def _score_chunk(tally: "_Tally", banks: Sequence[Sentences], candidates: torch.Tensor, a: int, items: np.ndarray) -> None:
    places = np.cumsum([0] + [len(bank) for bank in banks])
    queries = banks[a].matrix[banks[a].code[items]]
    scores = np.empty((len(items), len(candidates)), dtype=np.float32)
    for start in range(0, len(candidates), _SLAB):
        scores[:, start : start + _SLAB] = similarities(queries, candidates[start : start + _SLAB])
    scores[:, places[a] : places[a + 1]] = -np.inf  # a query's own language holds no candidates
    above, tied = (np.zeros((len(items), len(banks)), dtype=np.int64) for _ in range(2))
    truth = np.full((len(items), len(banks)), np.nan, dtype=np.float32)
    rows = np.arange(len(items))
    for b, bank in enumerate(banks):
        if b == a or not len(bank):
            continue
        block, code = scores[:, places[b] : places[b + 1]], bank.code[items]
        truth[:, b] = np.where(code >= 0, block[rows, code], np.nan)
        above[:, b] = bank.count(block > truth[:, b, None])
        tied[:, b] = bank.count(block == truth[:, b, None])
    present = ~np.isnan(truth)
    tally.add_recall(a, items, present, above, tied)
    answered = np.flatnonzero(present.any(axis=1))
    if len(answered) < len(items):
        scores, truth, present, items = scores[answered], truth[answered], present[answered], items[answered]
    if len(items):
        wanted = present.sum(axis=1)
        tally.add_share(a, present, _found(scores, truth, wanted), wanted)


def _found(scores: np.ndarray, truth: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Probability, float64 [q, M], that a true translation is among the `wanted` [q] top candidates of `scores` [q, c]."""
    top = torch.from_numpy(scores).topk(int(wanted.max()), dim=1).values.numpy()
    last = np.take_along_axis(top, wanted[:, None] - 1, axis=1)
    free = wanted - np.count_nonzero(top > last, axis=1)
    tied = np.count_nonzero(scores == last, axis=1)
    return (truth > last) + (truth == last) * (free / tied)[:, None]


class _Tally:
    """Sums over queries, per direction."""

    def __init__(self, banks: Sequence[Sentences], ks: Sequence[int]) -> None:
        size, n = len(banks), len(banks[0].code)
        self.banks, self.ks = banks, tuple(dict.fromkeys((1, *ks)))
        self.by_chance = {k: [chance.recall(max(bank.total, 1), k, bank.copies) for bank in banks] for k in self.ks}
        self.hits = {k: np.zeros((size, size)) for k in self.ks}
        self.chances = {k: np.zeros((size, size)) for k in self.ks}
        self.share, self.share_chance = np.zeros((size, size)), np.zeros((size, size))
        self.queries = np.zeros((size, size), dtype=np.int64)
        self.first = np.full((size, size, n), np.nan, dtype=np.float32)
        self.first_chance = np.full((size, size, n), np.nan, dtype=np.float32)
        self.score, self.chance, self.scored = 0.0, 0.0, 0

    def add_recall(self, a: int, items: np.ndarray, present: np.ndarray, above: np.ndarray, tied: np.ndarray) -> None:
        self.queries[a] += present.sum(axis=0)
        right = self._of_truth(items, present, [bank.copies for bank in self.banks])
        for k in self.ks:
            hits = np.where(present, expected_hits(above, tied, right, k), 0.0)
            by_chance = self._of_truth(items, present, self.by_chance[k])
            self.hits[k][a] += hits.sum(axis=0)
            self.chances[k][a] += by_chance.sum(axis=0)
            if k == 1:
                self.first[a][:, items] = np.where(present, hits, np.nan).T
                self.first_chance[a][:, items] = np.where(present, by_chance, np.nan).T

    def _of_truth(self, items: np.ndarray, present: np.ndarray, values: Sequence[np.ndarray]) -> np.ndarray:
        """[q, M]: the value, of those given for every distinct string of each language, of the query's true translation; else 0."""
        found = np.zeros(present.shape, dtype=values[0].dtype)
        for b, bank in enumerate(self.banks):
            answered = present[:, b]
            found[answered, b] = values[b][bank.code[items[answered]]]
        return found

    def add_share(self, a: int, present: np.ndarray, found: np.ndarray, wanted: np.ndarray) -> None:
        candidates = sum(len(bank) for b, bank in enumerate(self.banks) if b != a)
        by_chance = chance.sentence_translation(candidates, wanted)
        found = np.where(present, found, 0.0)
        self.share[a] += found.sum(axis=0)
        self.share_chance[a] += (present * by_chance[:, None]).sum(axis=0)
        self.score += float((found.sum(axis=1) / wanted).sum())
        self.chance += float(by_chance.sum())
        self.scored += len(wanted)

    def result(self, languages: tuple[str, ...], seen: Mapping[str, np.ndarray] | None) -> SentenceTranslation:
        both_seen = some_unseen = None
        if seen is not None:
            known = np.stack([np.asarray(seen[language], dtype=bool) for language in languages])
            both = known[:, None, :] & known[None, :, :]
            both_seen, some_unseen = self._subset(both), self._subset(~both)
        return SentenceTranslation(
            languages,
            score=self.score / self.scored if self.scored else float("nan"),
            chance=self.chance / self.scored if self.scored else float("nan"),
            share=_divide(self.share, self.queries),
            share_chance=_divide(self.share_chance, self.queries),
            recall={k: _divide(self.hits[k], self.queries) for k in self.ks},
            recall_chance={k: _divide(self.chances[k], self.queries) for k in self.ks},
            queries=self.queries,
            both_seen=both_seen,
            some_unseen=some_unseen,
        )

    def _subset(self, mask: np.ndarray) -> Subset:
        mask = mask & ~np.isnan(self.first)
        pairs = mask.sum(axis=2)
        hits = np.where(mask, self.first, 0.0).sum(axis=2, dtype=np.float64)
        by_chance = np.where(mask, self.first_chance, 0.0).sum(axis=2, dtype=np.float64)
        total = int(pairs.sum())
        return Subset(
            recall=float(hits.sum() / total) if total else float("nan"),
            chance=float(by_chance.sum() / total) if total else float("nan"),
            pairs=total,
            matrix=_divide(hits, pairs),
            matrix_chance=_divide(by_chance, pairs),
        )


def _divide(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")

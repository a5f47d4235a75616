"""Word translation by retrieval between the vocabularies of all languages (Globetrotter, §5.3, Figure 7)."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from raysys.evaluation import chance
from raysys.evaluation.lexicon import Direction, GroundTruth, Vocabulary
from raysys.evaluation.ranking import expected_hits, similarities, unit_vectors

K = 10
"""The k of recall@k, and CSLS's number of neighbours."""


@dataclass(frozen=True)
class WordTranslation:
    """Recall@k between languages; matrices are [query language, target language], NaN where nothing is asked."""

    recall: np.ndarray
    chance: np.ndarray
    queries: np.ndarray
    """int64: words with a right translation."""

    def mean(self) -> tuple[float, float]:
        """(recall@k, chance) over the ordered language pairs with queries, each pair weighing the same; NaN if there is none."""
        asked = self.queries > 0
        return (float(self.recall[asked].mean()), float(self.chance[asked].mean())) if asked.any() else (math.nan, math.nan)


def word_translation(
    vectors: Mapping[str, np.ndarray],
    vocabularies: Mapping[str, Vocabulary],
    truth: GroundTruth,
    *,
    k: int = K,
    crowded: Mapping[Direction, np.ndarray] | None = None,
    block_bytes: int = 64 << 20,
) -> WordTranslation:
    """Recall@k of every direction: share of words with a right translation of which one is among the k nearest words of the target.

    Queries are the words that `truth` has a translation for; candidates are all words of the target's vocabulary, whichever words are
    asked. Ties count with the expected value of a random order, so that constant vectors score exactly chance.

    (The authors' release counts right *pairs* among the k nearest; where a word has one translation, this is the same.)

    Args:
        vectors: float [words, d] per language, in the order of its vocabulary. Need not be normalised.
        vocabularies: language → words.
        truth: right translations, all of them in the vocabularies.
        k: how many nearest words are looked at.
        crowded: from :func:`crowding`, to rank by CSLS; None: by cosine.
        block_bytes: bound for the block of similarities held at a time.

    Raises:
        RunFailed: vectors that are not finite.
        ValueError: another number of vectors than of words.
    """
    languages = list(vocabularies)
    for language in languages:
        if len(vectors[language]) != len(vocabularies[language]):
            raise ValueError(f"{language}: {len(vectors[language])} vectors for {len(vocabularies[language])} words")
    shape = (len(languages), len(languages))
    recall, by_chance, queries = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
    for b, target in enumerate(languages):
        candidates = unit_vectors(vectors[target], f"words in {target}")
        place = {word: number for number, word in enumerate(vocabularies[target].words)}
        for a, source in enumerate(languages):
            right = truth.right.get((source, target), {}) if a != b else {}
            if not right:
                continue
            asked = [number for number, word in enumerate(vocabularies[source].words) if word in right]
            answers = [[place[answer] for answer in right[vocabularies[source].words[number]]] for number in asked]
            wanted = unit_vectors(np.asarray(vectors[source])[asked], f"words in {source}")
            penalty = None if crowded is None else torch.from_numpy(crowded[source, target])
            recall[a, b] = _hits(wanted, candidates, answers, penalty, k, block_bytes).mean()
            by_chance[a, b] = chance.recall(len(candidates), k, [len(one) for one in answers]).mean()
            queries[a, b] = len(asked)
    return WordTranslation(recall, by_chance, queries)


def _hits(
    wanted: torch.Tensor, candidates: torch.Tensor, answers: list[list[int]], penalty: torch.Tensor | None, k: int, block_bytes: int
) -> np.ndarray:
    """Expected hit@k of each query, float64 [q]."""
    hits = np.zeros(len(wanted))
    rows = max(1, block_bytes // (8 * len(candidates)))
    for start in range(0, len(wanted), rows):
        scores = similarities(wanted[start : start + rows], candidates)
        if penalty is not None:
            scores = 2 * scores.double() - penalty  # less r_T(x), which is the same for all candidates of a query
        block = answers[start : start + rows]
        is_right = torch.zeros(scores.shape, dtype=torch.bool)
        is_right[np.repeat(np.arange(len(block)), [len(one) for one in block]), list(itertools.chain.from_iterable(block))] = True
        best = scores.masked_fill(~is_right, -torch.inf).amax(dim=1, keepdim=True)
        above, equal = (scores > best).sum(dim=1), scores == best
        hits[start : start + rows] = expected_hits(above.numpy(), equal.sum(dim=1).numpy(), (equal & is_right).sum(dim=1).numpy(), k)
    return hits


def crowding(vectors: Mapping[str, np.ndarray], k: int = K, block_bytes: int = 64 << 20) -> dict[Direction, np.ndarray]:
    """How near the words of one language are to many words of another: what CSLS takes off, so that hubs are not everyone's answer.

    CSLS(x, y) = 2 cos(x, y) − r_T(x) − r_S(y) (Conneau et al., *Word translation without parallel data*, ICLR 2018, eq. 5), where
    r_S(y) is the mean cosine of a target word y to its `k` nearest source words, and r_T(x) likewise of a source word.

    Returns:
        (source, target) → r_S of every target word, float64 [words]. Words with equal vectors have equal values.

    Raises:
        RunFailed: vectors that are not finite.
    """
    found: dict[Direction, np.ndarray] = {}
    for source in vectors:
        words = unit_vectors(vectors[source], f"words in {source}")
        for target in vectors:
            if source != target and len(words):
                others = unit_vectors(vectors[target], f"words in {target}")
                rows = max(1, block_bytes // (8 * len(words)))
                nearest = torch.zeros(len(others), min(k, len(words)))
                for start in range(0, len(others), rows):
                    block = similarities(others[start : start + rows], words)
                    nearest[start : start + rows] = block.topk(nearest.shape[1], dim=1).values
                found[source, target] = nearest.double().mean(dim=1).numpy()
    return found

"""Ground truth for word translation from parallel captions: words that occur together more than chance would have it."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raysys.evaluation.lexicon import Direction, GroundTruth, Vocabulary, split_words


def cooccurring(
    items: Sequence[Mapping[str, Sequence[str]]], vocabularies: Mapping[str, Vocabulary], *, least: int = 2, significance: float = 10.83
) -> GroundTruth:
    """Translations from captions that say the same in several languages: words that occur together and hardly ever apart.

    The paper's authors took pairs of words that co-occur in the translated captions of their test set; which pairs, they published as
    a file, not as a rule. The rule here, for two languages and the items that have a caption in both (the first of each counts):

    * Counted are items, not occurrences: a word is in an item or is not.
    * How strongly a word u of one language goes with a word v of the other is the log-likelihood ratio G² of their 2 × 2 table
      (Dunning, *Accurate methods for the statistics of surprise and coincidence*, 1993), if they are together more often than
      independent words would be.
    * They are translations if each is the other's strongest, no other word being as strong; if at least `least` items have both;
      and if G² is at least `significance` (10.83: independent words exceed it once in a thousand).
    * A word with several equally strong partners (always together: *hot* and *dog*) stays without translation: the captions do
      not say which one it is.

    A word has one translation at most, and the rule is the same in both directions.

    `counts` of two languages: `items` with a caption in both; `pairs` found; `ambiguous` words of the two languages whose
    strongest partner, within the bounds above, is not the only one; `missing` distinct words of these captions, of the two
    languages together, that their vocabularies lack.
    """
    right: dict[Direction, dict[str, frozenset[str]]] = {}
    counts: dict[str, dict[str, int]] = {}
    texts = {a: _occurrences(items, a, vocabularies[a]) for a in vocabularies}
    for a, b in itertools.combinations(vocabularies, 2):
        first, second = texts[a], texts[b]
        common = first.present & second.present
        pairs, ambiguous = _strongest(first, second, common, least, significance)
        named = [(vocabularies[a].words[u], vocabularies[b].words[v]) for u, v in pairs]
        right[a, b] = {u: frozenset([v]) for u, v in named}
        right[b, a] = {v: frozenset([u]) for u, v in named}
        missing = sum(len({word for item in np.flatnonzero(common) for word in one.missing[item]}) for one in (first, second))
        counts[f"{a}-{b}"] = {"items": int(common.sum()), "pairs": len(pairs), "ambiguous": ambiguous, "missing": missing}
    return GroundTruth(right, counts)


@dataclass(frozen=True)
class _Occurrences:
    """Which words of a vocabulary are in which item."""

    size: int
    present: np.ndarray
    """bool [items]: has a caption in the language"""
    item: np.ndarray
    """int64 [occurrences], ascending"""
    word: np.ndarray
    """int64 [occurrences]: place in the vocabulary"""
    missing: list[set[str]]
    """Of each item, words that the vocabulary lacks."""


def _occurrences(items: Sequence[Mapping[str, Sequence[str]]], language: str, words: Vocabulary) -> _Occurrences:
    place = {word: number for number, word in enumerate(words.words)}
    captions = [next(iter(item.get(language, ())), None) for item in items]
    found = [set(split_words(caption)) if caption is not None else set() for caption in captions]
    known = [sorted(place[word] for word in one if word in place) for one in found]
    return _Occurrences(
        len(place),
        np.array([caption is not None for caption in captions], dtype=bool),
        np.repeat(np.arange(len(items)), [len(one) for one in known]),
        np.array(list(itertools.chain.from_iterable(known)), dtype=np.int64),
        [one - place.keys() for one in found],
    )


def _strongest(
    first: _Occurrences, second: _Occurrences, common: np.ndarray, least: int, significance: float
) -> tuple[list[tuple[int, int]], int]:
    """Pairs of words that are each other's only strongest partner; and the number of words with several."""
    kept, other = common[first.item], common[second.item]
    u, v = _together(first.item[kept], first.word[kept], second.item[other], second.word[other], len(common))
    code, together = np.unique(u * max(1, second.size) + v, return_counts=True)
    u, v = code // max(1, second.size), code % max(1, second.size)
    of_first = np.bincount(first.word[kept], minlength=first.size)
    of_second = np.bincount(second.word[other], minlength=second.size)
    strength = log_likelihood_ratio(together, of_first[u], of_second[v], int(common.sum()))
    good = (together >= least) & (strength >= significance)
    u, v, strength = u[good], v[good], strength[good]
    only_u, several_u = _maxima(u, strength, first.size)
    only_v, several_v = _maxima(v, strength, second.size)
    mutual = only_u & only_v
    return list(zip(u[mutual].tolist(), v[mutual].tolist(), strict=True)), several_u + several_v


def _together(
    item: np.ndarray, word: np.ndarray, other_item: np.ndarray, other_word: np.ndarray, items: int
) -> tuple[np.ndarray, np.ndarray]:
    """Every two words of the two languages that share an item, once for every such item."""
    partners = np.bincount(other_item, minlength=items)
    start = np.cumsum(partners) - partners
    repeats = partners[item]
    within = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return np.repeat(word, repeats), other_word[np.repeat(start[item], repeats) + within]


def _maxima(key: np.ndarray, value: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """bool [n]: this value is the only largest one of its key; and for how many keys there are several."""
    largest = np.full(size, -np.inf)
    np.maximum.at(largest, key, value)
    top = value == largest[key]
    count = np.bincount(key[top], minlength=size)
    return top & (count[key] == 1), int((count > 1).sum())


def log_likelihood_ratio(together: np.ndarray, first: np.ndarray, second: np.ndarray, total: int) -> np.ndarray:
    """Dunning's G² = 2 Σ O ln(O / E) over the 2 × 2 table of two events; 0 where they meet no more often than by chance.

    Args:
        together, first, second: int [n]: trials with both events, with the one, with the other.
        total: trials.
    """
    together, first, second = (np.asarray(values, dtype=np.float64) for values in (together, first, second))
    ratio = np.zeros(together.shape)
    for observed, row, column in (
        (together, first, second),
        (first - together, first, total - second),
        (second - together, total - first, second),
        (total - first - second + together, total - first, total - second),
    ):
        some = observed > 0
        ratio += np.where(some, observed * np.log(np.where(some, observed * total, 1.0) / np.where(some, row * column, 1.0)), 0.0)
    return np.where(together * total > first * second, 2 * ratio, 0.0)

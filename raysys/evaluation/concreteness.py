"""Concreteness of words by people's ratings: whether grounding helps more where language is concrete, and words that are not."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raysys.errors import UserError
from raysys.evaluation.lexicon import single_word, split_words
from raysys.evaluation.rated_pairs import Sets
from raysys.storage import Storage, join

_ADVICE = "`python jobs/prepare.py concreteness --out data/concreteness` makes English ones"
LEAST, MOST = 1.0, 5.0
"""The scale of Brysbaert and others (2014)."""
ABSTRACT = (2.0, 2.67)
"""Ratings of the abstract words that the paper asks for: 2.5 to 3.5 in its source (Nelson and others 2004), whose scale is 1 to 7."""


def read_ratings(folder: str, language: str = "en", storage: Storage | None = None) -> dict[str, float]:
    """Word → rating from 1 (abstract) to 5 (concrete), of `<language>.tsv` in `folder`: UTF-8, a line is a word, a tab and its rating.

    Words are read by :func:`raysys.evaluation.lexicon.single_word`; expressions of several words, which sentences are not
    searched for, are left out.

    Raises:
        UserError: no ratings in this language, or a line that is none; it names file and line.
    """
    storage, uri = storage or Storage(), join(folder, f"{language}.tsv")
    if not storage.exists(uri):
        raise UserError(f"there are no ratings of concreteness in {language}: {uri} is not there; {_ADVICE}")
    try:
        lines = storage.read(uri).decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise UserError(f"{uri} is not UTF-8 text") from None
    ratings: dict[str, float] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            word, rating = _rated(line, uri, number)
            if word:
                ratings.setdefault(word, rating)
    if not ratings:
        raise UserError(f"{uri} has not one rated word; {_ADVICE}")
    return ratings


def _rated(line: str, uri: str, number: int) -> tuple[str | None, float]:
    word, _, text = line.partition("\t")
    try:
        rating = float(text)
    except ValueError:
        rating = 0.0
    if not LEAST <= rating <= MOST:
        raise UserError(f"{uri}, line {number}: a word, a tab and a rating from 1 to 5 were expected, found {line[:80]!r}")
    return single_word(word), rating


@dataclass(frozen=True)
class MeanRating:
    """Concreteness of a text."""

    mean: float
    """Of the rated words, each as often as it occurs; NaN where there is none."""
    rated: int
    """Words that have a rating."""
    words: int


def mean_rating(sentences: Iterable[str], ratings: Mapping[str, float]) -> MeanRating:
    """Mean rating over all words of `sentences` that are rated, words such as "the" included: the paper's c̄."""
    counts = Counter(word for sentence in sentences for word in split_words(sentence))
    rated = {word: count for word, count in counts.items() if word in ratings}
    total = sum(rated.values())
    mean = sum(ratings[word] * count for word, count in rated.items()) / total if total else float("nan")
    return MeanRating(mean, total, counts.total())


def of_sets(sets: Sets, ratings: Mapping[str, float]) -> dict[str, MeanRating]:
    """Concreteness of every set of rated pairs, by its name; those without a rated word are left out."""
    found = {name: mean_rating(sets.sentences(name), ratings) for name in (*sets.pairs, *sets.means)}
    return {name: one for name, one in found.items() if one.rated}


@dataclass(frozen=True)
class AbstractQuery:
    """A sentence with an abstract word."""

    text: str
    word: str = ""
    """The word; empty for a sentence of one's own."""
    rating: float | None = None


def abstract_queries(
    sentences: Sequence[str],
    ratings: Mapping[str, float],
    count: int = 10,
    seed: int = 0,
    *,
    between: tuple[float, float] = ABSTRACT,
    words: tuple[int, int] = (3, 8),
    common: float = 0.005,
) -> list[AbstractQuery]:
    """Choose `count` short sentences that hold abstract words, each for another word.

    The words are drawn by `seed` among those that occur, then a sentence for each; a word that is rated below or above `between`
    does not count, nor does one that too many sentences have, such as "with" and "this".

    Args:
        sentences: to choose from; equal ones are one.
        ratings: of :func:`read_ratings`.
        count: most queries; there are fewer where fewer words are found.
        seed: same sentences, ratings and seed: same queries.
        between: least and highest rating of an abstract word.
        words: least and most words of a query.
        common: a word is passed over that occurs in more than this share of the sentences, and in more than one.
    """
    texts = {text: split_words(text) for text in dict.fromkeys(sentences)}
    counts = Counter(word for found in texts.values() for word in set(found))
    most = max(1, common * len(texts))
    holding: dict[str, list[str]] = {}
    for text, found in texts.items():
        if words[0] <= len(found) <= words[1]:
            for word in dict.fromkeys(found):
                if between[0] <= ratings.get(word, 0.0) <= between[1] and counts[word] <= most:
                    holding.setdefault(word, []).append(text)
    generator = np.random.default_rng(seed)
    queries: dict[str, AbstractQuery] = {}
    for word in generator.permutation(sorted(holding)).tolist():
        if len(queries) == count:
            break
        text = holding[word][generator.integers(len(holding[word]))]
        queries.setdefault(text, AbstractQuery(text, word, ratings[word]))
    return list(queries.values())

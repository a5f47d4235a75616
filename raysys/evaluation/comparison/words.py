"""Examples of word translation (Globetrotter, Table 2)."""

from collections.abc import Mapping

import numpy as np

from raysys.evaluation.comparison.data import FoundWord, WordExample
from raysys.evaluation.lexicon import GroundTruth, Vocabulary
from raysys.evaluation.naming import script
from raysys.evaluation.ranking import similarities, unit_vectors


def word_examples(
    vectors: Mapping[str, np.ndarray],
    vocabularies: Mapping[str, Vocabulary],
    truth: GroundTruth,
    source: str = "en",
    targets: int = 3,
    count: int = 12,
    seed: int = 0,
) -> list[WordExample]:
    """The nearest words in other languages for `count` words drawn at random (not chosen for success).

    Args:
        vectors: float [words, d] per language, in the order of its vocabulary, after Procrustes.
        vocabularies: language → words.
        truth: right translations; words without one in every target are not drawn.
        source: language of the words; where it has none, the first language.
        targets: languages to look in, of as many scripts as there are.
        count: words.
        seed: of the draw.
    """
    source = source if source in vocabularies else next(iter(vocabularies), "")
    spread: dict[str, list[str]] = {}
    for language in vocabularies:
        if language != source and truth.right.get((source, language)):
            spread.setdefault(script(language), []).append(language)
    turns = [[pile[i] for pile in spread.values() if i < len(pile)] for i in range(max(map(len, spread.values()), default=0))]
    shown = [language for turn in turns for language in turn][:targets]
    known = [word for word in vocabularies[source].words if all(word in truth.right[source, b] for b in shown)] if shown else []
    drawn = np.random.default_rng(seed).permutation(len(known))[:count]
    words = [known[i] for i in sorted(drawn)]
    if not words:
        return []
    place = {word: row for row, word in enumerate(vocabularies[source].words)}
    asked = unit_vectors(np.asarray(vectors[source])[[place[word] for word in words]], f"words in {source}")
    found: list[list[FoundWord]] = [[] for _ in words]
    for language in shown:
        scores = similarities(asked, unit_vectors(np.asarray(vectors[language]), f"words in {language}")).numpy()
        candidates = vocabularies[language].words
        for word, row, into in zip(words, scores, found, strict=True):
            right = truth.right[source, language][word]
            # A word that ties with a right one is not a success: it goes first.
            best = max(range(len(candidates)), key=lambda j: (row[j], candidates[j] not in right))
            into.append(FoundWord(language, candidates[best], candidates[best] in right, min(right)))
    return [WordExample(source, word, one) for word, one in zip(words, found, strict=True)]

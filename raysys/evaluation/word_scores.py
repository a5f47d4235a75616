"""From captions and dictionaries to the words that are asked, and from a system's word vectors to its scores."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pydantic

from raysys.evaluation.cooccurrence import cooccurring
from raysys.evaluation.lexicon import Direction, GroundTruth, Vocabulary, from_dictionaries, read_dictionaries, vocabulary
from raysys.evaluation.procrustes import TooFewPairs, align
from raysys.evaluation.word_translation import K, crowding, word_translation
from raysys.settings import Settings
from raysys.storage import Storage

WORDS = "words"
"""What the translation of words is called among the test splits."""


class WordTranslationSettings(Settings):
    """How words are scored."""

    vocabulary: pydantic.PositiveInt = 5000
    """Words of each language, the most frequent ones of the training captions."""
    together: pydantic.PositiveInt = 2
    """Parallel captions in which two words must occur together to count as translations of each other."""
    dictionaries: str = ""
    """Folder of dictionaries `<source>-<target>.tsv`, local or s3://; none if empty."""
    through: str = ""
    """Language (such as en) through which two languages without a dictionary are translated; if empty, they are not."""
    neighbours: pydantic.PositiveInt = 5
    """Procrustes: words of two languages are a pair if each is among so many nearest of the other."""
    least_pairs: pydantic.PositiveInt = 20
    """Procrustes: pairs that every two languages must have."""
    csls: bool = True
    """Also rank by cross-domain similarity local scaling."""


@dataclass(frozen=True)
class WordTask:
    """Vocabularies, and the translations to be found: the same for all systems that are compared."""

    vocabularies: dict[str, Vocabulary]
    truths: dict[str, GroundTruth]
    """Name in the metrics (`word_translation`, `word_translation_dictionary`) → ground truth."""


def word_task(
    training: Mapping[str, Sequence[str]],
    parallel: Sequence[Mapping[str, Sequence[str]]],
    settings: WordTranslationSettings,
    storage: Storage,
) -> WordTask:
    """What is to be translated.

    Args:
        training: language → captions whose words are the vocabularies (a run's training captions).
        parallel: items of test splits, language → captions; the first of each language are translations of each other. May be empty.
        settings: sizes, and where dictionaries lie.
        storage: the door to the dictionaries.

    Raises:
        UserError: no dictionary between two of the languages where a folder of them is given, or one that cannot be read.
    """
    vocabularies = {language: vocabulary(captions, settings.vocabulary) for language, captions in training.items()}
    vocabularies = {language: words for language, words in vocabularies.items() if words.words}
    truths = {"word_translation": cooccurring(parallel, vocabularies, least=settings.together)}
    if settings.dictionaries:
        languages = [*vocabularies, *([settings.through] if settings.through and settings.through not in vocabularies else [])]
        dictionaries = read_dictionaries(settings.dictionaries, languages, storage)
        truths["word_translation_dictionary"] = from_dictionaries(vocabularies, dictionaries, through=settings.through or None)
    return WordTask(vocabularies, truths)


def score_words(task: WordTask, vectors: Mapping[str, np.ndarray], settings: WordTranslationSettings) -> dict[str, Any]:
    """Word translation of one system, in the shape of the scores of a split (:func:`raysys.evaluation.scores.score`).

    Keys of the result:
        items: words of all vocabularies; languages: tags; lacking: language → words that no ground truth has a translation for.
        metrics, chance: `eval/word_translation_R@10`, mean over ordered language pairs with queries, each weighing the same. Between
            name and end, in this order: `_dictionary` (the translations are those of dictionaries, not of co-occurring words),
            `_disjoint` (only words whose string is not in both languages), `_procrustes` (after Procrustes), `_csls`. For example
            `eval/word_translation_dictionary_R@10_disjoint_procrustes_csls`. What has nothing to count is absent.
        matrices: the same names without `eval/` → recall@10 [query][target] in the order of `languages`, null where there is no query.
        words: counted on the way: `vocabulary` and `left_out` (words too rare for it) by language, and by ground truth the
            counts of two languages.
        procrustes: `pairs` of mutual neighbours by two languages and the `objective` after every sweep; or `error`, why there
            are no numbers after Procrustes.

    Args:
        task: what is asked.
        vectors: float [words, d] per language, in the order of its vocabulary.
        settings: how similar words are found.

    Raises:
        RunFailed: vectors that are not finite.
    """
    languages = list(task.vocabularies)
    asked: dict[str, set[str]] = {language: set() for language in languages}
    for truth in task.truths.values():
        for (language, _), right in truth.right.items():
            asked[language].update(right)
    result: dict[str, Any] = {
        "items": sum(map(len, task.vocabularies.values())),
        "languages": languages,
        "lacking": {language: len(words) - len(asked[language]) for language, words in task.vocabularies.items()},
        "metrics": {},
        "chance": {},
        "matrices": {},
        "words": {
            "vocabulary": {language: len(words) for language, words in task.vocabularies.items()},
            "left_out": {language: words.left_out for language, words in task.vocabularies.items()},
            **{name: truth.counts for name, truth in task.truths.items()},
        },
    }
    if len(languages) < 2:
        return result
    spaces = {"": vectors}
    try:
        alignment = align(vectors, neighbours=settings.neighbours, least_pairs=settings.least_pairs)
        spaces["_procrustes"] = alignment.apply(vectors)
        pairs = {f"{a}-{b}": count for (a, b), count in alignment.pairs.items()}
        result["procrustes"] = {"pairs": pairs, "objective": list(alignment.objective)}
    except TooFewPairs as error:
        result["procrustes"] = {"error": str(error)}
    for space, placed in spaces.items():
        measures: dict[str, Mapping[Direction, np.ndarray] | None] = {"": None}
        if settings.csls:
            measures["_csls"] = crowding(placed)
        for (name, truth), (measure, crowded) in itertools.product(task.truths.items(), measures.items()):
            for words, wanted in (("", truth), ("_disjoint", truth.disjoint(task.vocabularies))):
                got = word_translation(placed, task.vocabularies, wanted, crowded=crowded)
                recall, by_chance = got.mean()
                if not math.isnan(recall):
                    metric = f"{name}_R@{K}{words}{space}{measure}"
                    result["metrics"][f"eval/{metric}"], result["chance"][f"eval/{metric}"] = recall, by_chance
                    result["matrices"][metric] = [[None if math.isnan(v) else round(float(v), 6) for v in row] for row in got.recall]
    return result

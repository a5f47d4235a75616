"""Which words a run is asked to translate, and what its encoders make of them."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from raysys.data.captions import all_captions
from raysys.data.samples import Samples
from raysys.evaluation.scores import Item
from raysys.evaluation.word_scores import WordTask, WordTranslationSettings, word_task
from raysys.runs.run import Log, SavedRun
from raysys.shards.manifest import NAME
from raysys.storage import join
from raysys.systems.encoder import Encoder

_MOST = 100_000  # training samples whose captions are read, evenly spaced


def training_texts(run: SavedRun) -> dict[str, list[str]] | None:
    """The run's training captions by language, of a hundred thousand samples at most; None where the data is not at hand."""
    data, storage = run.settings.data, run.folder.storage
    if not all(storage.exists(join(data.locate(name), NAME)) for name in data.captioned):
        return None
    texts: dict[str, list[str]] = defaultdict(list)
    for language, caption in all_captions(data.load(data.captioned, data.languages, storage, log=lambda line: None), _MOST):
        texts[language].append(caption)
    return {language: texts[language] for language in data.languages if texts[language]}


def located(run: SavedRun) -> WordTranslationSettings:
    """The run's settings for words, with the place of the dictionaries."""
    settings = run.settings.evaluation.words
    return settings.model_copy(update={"dictionaries": settings.dictionaries and run.settings.data.locate(settings.dictionaries)})


def make_word_task(
    run: SavedRun, training: Mapping[str, Sequence[str]], items: Mapping[str, Sequence[Item]], splits: Mapping[str, Samples], log: Log
) -> tuple[WordTask, str]:
    """What is asked of every encoder, and a fingerprint by which results of several runs are known to be of the same task.

    Args:
        run: whose settings say how words are scored.
        training: from :func:`training_texts`.
        items: test split → its samples, whose captions are parallel.
        splits: the same, for their fingerprints.
        log: takes a line for people.
    """
    settings = located(run)
    parallel = [item.captions for split in items.values() for item in split]
    task = word_task(training, parallel, settings, run.folder.storage)
    for name, truth in task.truths.items():
        asked = sum(len(right) for right in truth.right.values())
        log(f"{name.replace('_', ' ')}: {asked} words to translate in {sum(map(bool, truth.right.values()))} directions")
    asked_how = settings.model_copy(update={"dictionaries": ""})  # wherever they lie: what they say counts
    digest = hashlib.blake2b(asked_how.model_dump_json().encode(), digest_size=16)
    for words in task.vocabularies.values():
        digest.update("\n".join(words.words).encode())
    for name, truth in task.truths.items():
        answers = {"-".join(pair): {word: sorted(found) for word, found in right.items()} for pair, right in truth.right.items()}
        digest.update(json.dumps([name, answers], sort_keys=True).encode())
    for samples in splits.values():
        digest.update(samples.fingerprint.encode())
    return task, digest.hexdigest()


def vectors_of_words(encoder: Encoder, task: WordTask) -> dict[str, np.ndarray]:
    """Language → float32 [words, h], in the order of the task's vocabularies."""
    return {language: encoder.word_vectors(words.words, [language] * len(words)) for language, words in task.vocabularies.items()}

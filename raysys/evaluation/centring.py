"""Mean-centring per language: taking from every sentence what all sentences of its language have in common.

Encoders of many languages keep the language itself in the vector, which makes sentences of one language alike whatever they mean
(Libovický et al. 2020, §3). Without its language's mean, a sentence is compared by what it says.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from raysys.evaluation.ranking import unit_rows
from raysys.evaluation.scores import EncodedItems, Encoder, encode_sentences

GIVEN, SPLIT = "given", "split"
"""Whose mean a language was centred on: given to :func:`centred` (captions of training), or of the scored split itself."""
_NOTHING = 1e-6  # of a unit vector: what is shorter after centring is rounding, and has no direction


def language_means(encoder: Encoder, captions: Mapping[str, Sequence[str]]) -> dict[str, np.ndarray]:
    """Mean unit sentence vector, float32 [d], of each language's `captions`, every caption weighing the same.

    The captions should be those of training, a few thousand of each language. A language without any is left out.
    """
    vectors = encode_sentences(encoder, captions)
    return {language: _unit(vectors[language]).mean(axis=0).astype(np.float32) for language in captions if len(captions[language])}


def centred(encoded: EncodedItems, means: Mapping[str, np.ndarray] | None = None) -> EncodedItems:
    """The same split with each language's mean taken from its unit sentence vectors, which are then normalised again.

    Only the space of sentences changes, not that of captions and images. Where `means` lacks a language, as it must for one that
    was held out of training, the mean of the split's own sentences is taken, each distinct string weighing the same. It uses no
    translation, but an encoder that serves one sentence at a time has no such mean: `centred` of the result, which
    :func:`raysys.evaluation.scores.score` reports, says for every language which it was.

    Args:
        encoded: the split.
        means: language → float [d], of other data; see :func:`language_means`.

    Raises:
        ValueError: a mean whose size is not that of the vectors.
    """
    sentences, source = {}, {}
    for language in encoded.languages:
        vectors, texts = _unit(encoded.sentences[language]), encoded.texts[language]
        first = {text: row for row, text in reversed(list(enumerate(texts))) if text is not None}
        source[language] = GIVEN if means is not None and language in means else SPLIT
        if means is not None and language in means:
            mean = np.asarray(means[language], dtype=np.float64)
        else:
            mean = vectors[list(first.values())].mean(axis=0) if first else np.zeros(vectors.shape[1])
        if mean.shape != vectors.shape[1:]:
            raise ValueError(f"{language}: a mean of shape {mean.shape} for vectors of size {vectors.shape[1]}")
        apart = vectors - mean
        apart[[text is None for text in texts]] = 0
        apart[np.linalg.norm(apart, axis=1) < _NOTHING] = 0
        sentences[language] = unit_rows(apart).astype(np.float32)
    return dataclasses.replace(encoded, sentences=sentences, centred=source)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return unit_rows(np.asarray(vectors, dtype=np.float64))

"""Any number of encoders, scored on the same splits and words."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raysys.evaluation.references import Reference
from raysys.evaluation.scores import EncodedItems, Item, encode_items, score
from raysys.evaluation.word_scores import WORDS, WordTask, WordTranslationSettings, score_words
from raysys.runs.words import vectors_of_words
from raysys.systems.encoder import Encoder


@dataclass
class Scoring:
    """Scores any number of encoders on the same splits and words.

    Args:
        items: test split → its samples.
        held_out: languages that training knows nothing of.
        task: words to translate, if any.
        how: words are scored.
    """

    items: Mapping[str, Sequence[Item]]
    held_out: Sequence[str] = ()
    task: WordTask | None = None
    how: WordTranslationSettings = field(default_factory=WordTranslationSettings)
    remembered: dict[str, np.ndarray] = field(default_factory=dict)
    """Vectors of frozen image networks, kept for the next encoder."""

    def of(self, encoder: Encoder) -> dict[str, Any]:
        """Split → result of :func:`raysys.evaluation.scores.score`; that of the words is one more."""
        return self.of_encoded(self.encode(encoder)) | self.words(encoder)

    def of_reference(self, encoder: Reference) -> dict[str, Any]:
        """As :meth:`of`, of an encoder of sentences alone."""
        return self.of_encoded({name: encode_items(encoder, split) for name, split in self.items.items()})

    def encode(self, encoder: Encoder) -> dict[str, EncodedItems]:
        """Every split as vectors; of a system that was trained on text alone, without those of images."""
        scored = RememberingEncoder(encoder, self.remembered)
        if not encoder.reads_languages:
            return {name: encode_items(scored, split) for name, split in self.items.items()}
        known = encoder.info["languages"]  # it can say nothing in others
        return {
            name: encode_items(scored, split, [language for language in known if any(language in item.captions for item in split)])
            for name, split in self.items.items()
        }

    def of_encoded(self, encoded: Mapping[str, EncodedItems]) -> dict[str, Any]:
        """Split → result."""
        return {name: score(split, held_out=self.held_out) for name, split in encoded.items()}

    def words(self, encoder: Encoder) -> dict[str, Any]:
        """The result of the words, where some are asked."""
        return {WORDS: score_words(self.task, vectors_of_words(encoder, self.task), self.how)} if self.task else {}


class RememberingEncoder:
    """An encoder whose frozen image network sees every picture once, also on behalf of other encoders with the same network.

    Args:
        encoder: what is asked.
        remembered: (network, preprocessing, picture) → vector of the network; shared between encoders.
    """

    def __init__(self, encoder: Encoder, remembered: dict[str, np.ndarray]):
        self.encoder = encoder
        self.remembered = remembered
        self.reads_languages, self.has_images = encoder.reads_languages, encoder.has_images
        self.encode_texts = encoder.encode_texts
        self.encode_captions_for_images = encoder.encode_captions_for_images

    def encode_images(self, images: Sequence[bytes]) -> np.ndarray:
        """As :meth:`raysys.systems.encoder.Encoder.encode_images`."""
        network = self.encoder.system.model.image
        if not network.frozen:
            return self.encoder.encode_images(images)
        same = (network.model_dump_json() + self.encoder.preprocess.settings.model_dump_json()).encode()
        keys = [hashlib.blake2b(same + image, digest_size=16).hexdigest() for image in images]
        new = [index for index, key in enumerate(keys) if key not in self.remembered]
        vectors = self.encoder.image_features([images[index] for index in new])
        self.remembered |= {keys[index]: vector for index, vector in zip(new, vectors, strict=True)}
        return self.encoder.project_image_features(np.stack([self.remembered[key] for key in keys]))

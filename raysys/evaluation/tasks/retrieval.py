"""Recall@1 of images by texts and of texts by images, from the scores of all pairs."""

from typing import NamedTuple

import numpy as np

from raysys.evaluation.chance import recall
from raysys.evaluation.ranking import expected_hits


class Retrieval(NamedTuple):
    """Recall@1 both ways, each beside that of a random ranking."""

    text_to_image: float
    image_to_text: float
    text_to_image_chance: float
    """1 / images"""
    image_to_text_chance: float
    """Mean over the images of their texts / texts."""

    @property
    def mean(self) -> float:
        """Of both ways, as the paper reports it."""
        return (self.text_to_image + self.image_to_text) / 2

    @property
    def mean_chance(self) -> float:
        """Of both ways."""
        return (self.text_to_image_chance + self.image_to_text_chance) / 2


def retrieval(scores: np.ndarray, image_of: np.ndarray) -> Retrieval:
    """Rank all images for every text, and all texts for every image. Ties count with the expected value of a random order.

    Args:
        scores: float [I, T], how well image and text go together.
        image_of: int64 [T], the image that each text is about; every image has a text.

    Raises:
        ValueError: a score that is not a number, or an image without a text.
    """
    images, texts = scores.shape
    right = np.arange(images)[:, None] == image_of[None, :]
    if not np.isfinite(scores).all() or not right.any(axis=1).all():
        raise ValueError("every score has to be finite, and every image to have a text")
    own = np.where(right, scores, -np.inf)
    of_image, of_text = own.max(axis=1, keepdims=True), own.max(axis=0, keepdims=True)
    tied_text, tied_image = scores == of_image, scores == of_text
    found = expected_hits((scores > of_image).sum(axis=1), tied_text.sum(axis=1), (tied_text & right).sum(axis=1), 1)
    named = expected_hits((scores > of_text).sum(axis=0), tied_image.sum(axis=0), 1, 1)
    by_chance = float(np.mean(recall(texts, 1, right.sum(axis=1))))
    return Retrieval(float(named.mean()), float(found.mean()), 1 / images, by_chance)

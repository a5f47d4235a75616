"""Recall@1 both ways, against a ranking by sorting, ties against all orders, chance against the mean over all rankings."""

import itertools

import numpy as np
import pytest

from raysys.evaluation.tasks.retrieval import retrieval


def by_sorting(scores: np.ndarray, image_of: np.ndarray) -> tuple[float, float]:
    named = [int(np.argsort(-scores[:, text])[0]) == image_of[text] for text in range(scores.shape[1])]
    found = [image_of[int(np.argsort(-scores[image])[0])] == image for image in range(scores.shape[0])]
    return float(np.mean(named)), float(np.mean(found))


def test_against_sorting():
    generator = np.random.default_rng(0)
    for images, texts in ((5, 5), (4, 12), (1, 3)):
        image_of = np.concatenate([np.arange(images), generator.integers(0, images, texts - images)])
        scores = generator.normal(size=(images, texts)) + (np.arange(images)[:, None] == image_of)
        found = retrieval(scores.astype(np.float32), image_of)
        assert (found.text_to_image, found.image_to_text) == pytest.approx(by_sorting(scores, image_of))
        assert found.mean == pytest.approx((found.text_to_image + found.image_to_text) / 2)


def test_ties_are_worth_what_a_random_order_gives():
    scores = np.array([[1.0, 1.0, 0.0], [1.0, 0.5, 0.5]])
    found = retrieval(scores, np.array([0, 1, 1]))
    # text 0: two images tie, one is right; text 1: the other image; text 2: its own
    assert found.text_to_image == pytest.approx((1 / 2 + 0 + 1) / 3)
    # image 0: texts 0 and 1 tie; image 1: text 0 is above both of its own
    assert found.image_to_text == pytest.approx((1 / 2 + 0) / 2)


def test_chance_is_the_mean_over_all_rankings():
    image_of = np.array([0, 0, 1])
    found = retrieval(np.zeros((2, 3)), image_of)
    orders = list(itertools.permutations(range(3)))
    mean = np.mean([image_of[order[0]] == image for order in orders for image in range(2)])
    assert found.image_to_text_chance == pytest.approx(mean)
    assert found.text_to_image_chance == pytest.approx(1 / 2)
    assert (found.text_to_image, found.image_to_text) == pytest.approx((found.text_to_image_chance, found.image_to_text_chance))


def test_scores_that_are_no_numbers_and_images_without_text():
    for scores, image_of in ((np.full((1, 1), np.nan), [0]), (np.zeros((2, 2)), [0, 0])):
        with pytest.raises(ValueError, match="every"):
            retrieval(scores, np.array(image_of))

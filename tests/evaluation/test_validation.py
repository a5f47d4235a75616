"""What checkpoints are compared by, against a plain loop."""

import numpy as np
import pytest

from raysys.evaluation.validation import SCORE, score_validation


@pytest.mark.parametrize("coarse", [False, True])
def test_mean_of_six_recalls_by_a_plain_loop(coarse):
    generator = np.random.default_rng(3)
    make = (lambda: generator.integers(-1, 2, (30, 2))) if coarse else (lambda: generator.normal(size=(30, 4)))
    images, captions, ids = make().astype(np.float32), make().astype(np.float32), generator.integers(20, size=30)
    got = score_validation({"view_1": images, "image_caption": captions, "image_ids": ids})
    unit = [v / np.where((norm := np.linalg.norm(v.astype(float), axis=1, keepdims=True)) > 0, norm, 1) for v in (images, captions)]
    cosines = (unit[1] @ unit[0].T).round(6)  # caption × image
    names = {}
    for way, scores in (("text_to_image", cosines), ("image_to_text", cosines.T)):
        for k in (1, 5, 10):
            orders = 400 if coarse else 1  # ties by drawing lots
            hits = [
                any(ids[i] == ids[j] for j in np.lexsort((generator.random(30), -scores[i]))[:k]) for _ in range(orders) for i in range(30)
            ]
            names[f"eval/validation_{way}_R@{k}"] = np.mean(hits)
    assert got.pop(SCORE) == pytest.approx(np.mean(list(got.values())))
    assert got == pytest.approx(names, abs=0.02 if coarse else 1e-9)


def test_a_system_of_text_alone_has_none():
    assert score_validation({"caption": np.eye(3)}) == {}

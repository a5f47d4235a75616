"""How checkpoints are compared while training goes on: by the validation split alone, in which each image has one language."""

import numpy as np

from raysys.evaluation.retrieval import cross_modal

SCORE = "eval/validation_mean_recall"
"""The metric by which the best checkpoint is chosen: mean of recall@1, 5 and 10 both ways, all languages in one pool."""

_LIMIT = 2000  # pairs; the pool is quadratic and validation must not hold up training


def score_validation(vectors: dict[str, np.ndarray]) -> dict[str, float]:
    """Metrics of one pass over the validation split.

    Args:
        vectors: `view_1` and `image_caption`, float32 [n, d], and `image_ids`, int64 [n]; without images (a system trained
            on text alone) nothing can be compared and the result is empty.
    """
    if "image_caption" not in vectors:
        return {}
    scores = cross_modal(vectors["view_1"], {"all": vectors["image_caption"]}, vectors["image_ids"].tolist(), limit=_LIMIT)
    ways = [("text_to_image", scores.mean_text_to_image), ("image_to_text", scores.mean_image_to_text)]
    found = {f"eval/validation_{way}_R@{k}": recall.at[k] for way, recall in ways if recall for k in recall.at}
    return {SCORE: float(np.mean(list(found.values()))), **found} if found else {}

"""How checkpoints of fine-tuning are compared while training goes on."""

from collections.abc import Callable

import numpy as np

Vectors = dict[str, np.ndarray]
ACCURACY, MATCHING, LIKELIHOOD = "eval/validation_accuracy", "eval/validation_matching", "eval/validation_log_likelihood"
"""The metrics by which the best checkpoint is chosen; greater is better."""


def validation_score(task: str) -> tuple[Callable[[Vectors], dict[str, float]], str]:
    """Of a task: the function from the rows of all validation records to metrics, and the metric that counts."""
    if task == "itr":
        return score_matching, MATCHING
    return (score_translations, LIKELIHOOD) if task == "mmt" else (score_classes, ACCURACY)


def score_classes(vectors: Vectors) -> dict[str, float]:
    """Accuracy: the share of `labels`, int64 [n], that `answers`, int64 [n], are equal to; an answer that training has not is wrong."""
    return {ACCURACY: float(np.mean(vectors["answers"] == vectors["labels"]))}


def score_matching(vectors: Vectors) -> dict[str, float]:
    """The share of images whose own text has the highest of `scores`, float32 [n, 1 + M], alone: that of the texts beside it is lower."""
    scores, others = vectors["scores"], vectors["near_rows"] >= 0
    return {MATCHING: float(np.mean(scores[:, 0] > np.where(others, scores[:, 1:], -np.inf).max(axis=1)))}


def score_translations(vectors: Vectors) -> dict[str, float]:
    """Mean log-likelihood of a word of the translations, in nats: minus the sum of `nll`, float32 [n], by that of `tokens`, int64 [n]."""
    return {LIKELIHOOD: -float(vectors["nll"].sum() / vectors["tokens"].sum())}

"""By what checkpoints are compared, by hand."""

import numpy as np
import pytest

from raysys.evaluation.tasks.validation import validation_score


@pytest.mark.parametrize(
    ("task", "rows", "expected"),
    [
        ("xgqa", {"answers": np.array([0, 1, 2, 1]), "labels": np.array([0, 2, 2, -1])}, 0.5),
        (
            "itr",
            {"scores": np.array([[1, 0, 2], [1, 0, 2], [1, 1, 0], [3, 1, 0]]), "near_rows": np.array([[5, -1], [5, 6], [5, 6], [5, 6]])},
            0.5,
        ),
        ("mmt", {"nll": np.array([6.0, 2.0]), "tokens": np.array([3, 1])}, -2.0),
    ],
)
def test_by_hand(task, rows, expected):
    score, metric = validation_score(task)
    assert score(rows) == {metric: pytest.approx(expected)}

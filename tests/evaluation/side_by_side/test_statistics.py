"""Mean and deviation against hand computation and NumPy."""

import numpy as np
import pytest

from raysys.evaluation.side_by_side.row import Row
from raysys.evaluation.side_by_side.statistics import Summary, summarise
from tests.evaluation.comparison.rows import SENTENCES, result


def test_mean_and_deviation_by_hand():
    summary = Summary({0: 0.2, 1: 0.4, 2: 0.9})
    assert summary.mean == pytest.approx(0.5)
    assert summary.deviation == pytest.approx(0.13**0.5)  # (0.09 + 0.01 + 0.16) / 2
    assert summary.high == pytest.approx(0.9)


def test_against_numpy():
    values = np.random.default_rng(0).random(7)
    summary = Summary(dict(enumerate(values)))
    assert summary.mean == pytest.approx(values.mean())
    assert summary.deviation == pytest.approx(values.std(ddof=1))


def test_one_seed_has_no_deviation():
    assert Summary({4: 0.3}).deviation is None
    assert Summary({4: 0.3}).high == 0.3


def test_seeds_without_a_value_do_not_count():
    assert summarise({0: None, 1: 0.5, 2: 0.7}).mean == pytest.approx(0.6)
    assert summarise({0: None}) is None
    assert summarise({}) is None


def test_matrices_are_averaged_over_seeds_cell_by_cell():
    row = Row("x", "x", {0: {"t": result(0.2)}, 1: {"t": result(0.6)}, 2: {"other": result(0.9)}})
    languages, matrix = row.matrix("t", "share")
    assert languages == ["de", "en", "ru"]
    assert matrix[0][0] is None
    assert matrix[0][1] == matrix[2][1] == pytest.approx(0.4)
    assert row.matrix("nowhere", "share") is None
    assert row.summary("t", SENTENCES).values == {0: 0.2, 1: 0.6}
    assert row.chance("t", SENTENCES) == 0.025
    assert row.chance("nowhere", SENTENCES) is None

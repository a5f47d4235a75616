"""McNemar's exact test against sums of binomials written out."""

import math

import numpy as np
import pytest

from raysys.evaluation.senteval import significance


def answers(both: int, only_a: int, only_b: int, neither: int) -> tuple[np.ndarray, np.ndarray]:
    a = [True] * both + [True] * only_a + [False] * only_b + [False] * neither
    b = [True] * both + [False] * only_a + [True] * only_b + [False] * neither
    return np.array(a), np.array(b)


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (1, 0), (5, 0), (3, 9), (9, 3), (40, 41), (130, 90)])
def test_p_is_that_of_the_binomial(only_a, only_b):
    n, fewer = only_a + only_b, min(only_a, only_b)
    tail = sum(math.comb(n, k) for k in range(fewer + 1)) / 2**n
    assert significance(*answers(50, only_a, only_b, 20)) == pytest.approx(min(1.0, 2 * tail))


def test_what_both_get_right_or_wrong_does_not_matter():
    assert significance(*answers(1000, 3, 12, 7)) == significance(*answers(2, 3, 12, 500)) < 0.05


def test_answers_to_different_examples_are_refused():
    with pytest.raises(ValueError, match="same examples"):
        significance(np.ones(3, dtype=bool), np.ones(4, dtype=bool))

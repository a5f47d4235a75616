"""Means over words and over texts, and languages that count for more."""

import pytest
import torch

from raysys.objectives.masked_words import language_weights, words_loss

SUMS, COUNTS = torch.tensor([6.0, 0.0, 1.0]), torch.tensor([3, 0, 1])


@pytest.mark.parametrize(("over", "expected"), [("mean", 7 / 4), ("sum", 7 / 2)])
def test_over_words_or_over_texts(over, expected):
    assert words_loss(SUMS, COUNTS, over).item() == pytest.approx(expected)


def test_weights_are_of_rows():
    assert words_loss(SUMS, COUNTS, "mean", torch.tensor([1.0, 5.0, 3.0])).item() == pytest.approx((6 + 3) / (3 + 3))


def test_without_words_it_is_zero_with_a_gradient():
    sums = torch.zeros(2, requires_grad=True)
    loss = words_loss(sums, torch.zeros(2, dtype=torch.int64))
    loss.backward()
    assert loss.item() == 0
    assert sums.grad.tolist() == [0, 0]


@pytest.mark.parametrize(("exponent", "rare"), [(1.0, 1 / 4), (0.3, 1 / (1 + 3**0.3)), (0.0, 1 / 2)])
def test_a_language_has_the_share_of_its_power(exponent, rare):
    languages, counted = torch.tensor([2, 5, 2, 2, 5, 5]), torch.tensor([True, True, True, True, False, False])
    weights = language_weights(languages, counted, exponent)
    assert weights[~counted].tolist() == [0, 0]
    assert (weights[1] / weights.sum()).item() == pytest.approx(rare)

import math

import pytest
import torch

from raysys.objectives.similarity import (
    MINIMUM_TEMPERATURE,
    cosine_similarity,
    same_image_pairs,
    scale_by_temperature,
    unit_vectors,
    weighted_cross_entropy,
)


def test_unit_vectors_give_a_zero_vector_no_gradient():
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    unit = unit_vectors(rows)
    assert unit.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]
    unit.sum().backward()
    assert rows.grad[1].tolist() == [0, 0]
    assert torch.autograd.gradcheck(unit_vectors, torch.randn(3, 4, dtype=torch.float64, requires_grad=True))


def test_a_broken_vector_is_not_hidden():
    assert unit_vectors(torch.tensor([[math.nan, 1.0]])).isnan().any()
    assert unit_vectors(torch.tensor([[math.inf, 1.0]])).isnan().any()


def test_cosines_are_float32_under_autocast_and_for_half_precision():
    a = torch.randn(6, 32)
    exact = cosine_similarity(a.double(), a.double())
    assert exact.dtype == torch.float64
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under_autocast = cosine_similarity(a, a)
    assert under_autocast.dtype == torch.float32
    torch.testing.assert_close(under_autocast.double(), exact, atol=1e-6, rtol=0)
    half = a.bfloat16()
    result = cosine_similarity(half, half)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result.double(), cosine_similarity(half.double(), half.double()), atol=1e-6, rtol=0)


def test_same_image_pairs():
    pairs = same_image_pairs(torch.tensor([7, -3, 7, 0, 0]))
    assert pairs.int().tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]


@pytest.mark.parametrize("temperature", [0.0, -1.0, 1e-9, MINIMUM_TEMPERATURE])
def test_temperature_is_clamped(temperature):
    similarity = torch.tensor([1.0, -1.0])
    expected = pytest.approx([100.0, -100.0])
    assert scale_by_temperature(similarity, temperature).tolist() == expected
    assert scale_by_temperature(similarity, torch.tensor([temperature])).tolist() == expected


def test_a_learned_temperature_can_come_back_from_below_the_minimum():
    temperature = torch.tensor([0.001], requires_grad=True)
    scale_by_temperature(torch.tensor([1.0]), temperature).sum().backward()
    assert temperature.grad.item() == pytest.approx(-1 / MINIMUM_TEMPERATURE**2)


def test_weights_of_excluded_pairs_do_not_count():
    logits = torch.zeros(2, 3)
    excluded = torch.tensor([[True, False, False], [False, True, False]])
    assert weighted_cross_entropy(logits, torch.ones(2, 3), excluded).item() == pytest.approx(math.log(2))
    assert weighted_cross_entropy(logits, torch.ones(2, 3)).item() == pytest.approx(math.log(3))

import math

import pytest
import torch

from raysys.objectives.similarity import (
    MINIMUM_TEMPERATURE,
    clamp_temperature,
    leave_out_itself,
    same_image_pairs,
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


def test_same_image_pairs():
    pairs = same_image_pairs(torch.tensor([7, -3, 7, 0, 0]))
    assert pairs.int().tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    assert same_image_pairs(torch.tensor([7, -3, 7, 0, 0]), slice(2, 4)).equal(pairs[2:4])


@pytest.mark.parametrize("temperature", [0.0, -1.0, 1e-9, MINIMUM_TEMPERATURE])
def test_temperature_is_clamped(temperature):
    assert clamp_temperature(temperature) == MINIMUM_TEMPERATURE
    assert clamp_temperature(torch.tensor([temperature])).item() == pytest.approx(MINIMUM_TEMPERATURE)
    assert clamp_temperature(0.5) == clamp_temperature(torch.tensor([0.5])).item() == 0.5
    assert clamp_temperature(torch.tensor([math.nan])).isnan()


@pytest.mark.parametrize(("start", "slope", "passes"), [(0.001, -2.0, -2.0), (0.001, 2.0, 0.0), (0.01, 2.0, 0.0), (0.1, 2.0, 2.0)])
def test_a_learned_temperature_can_come_back_from_below_the_minimum_and_sinks_no_further(start, slope, passes):
    temperature = torch.tensor([start], requires_grad=True)
    (clamp_temperature(temperature) * slope).sum().backward()
    assert temperature.grad.item() == passes


def test_what_is_left_out_does_not_count():
    weights = torch.tensor([[0.0, 1, 1], [1, 0, 1]])
    loss, weight = weighted_cross_entropy(leave_out_itself(torch.zeros(2, 3), slice(0, 2)), weights)
    assert weight == 4
    assert loss.item() == pytest.approx(4 * math.log(2))
    loss, weight = weighted_cross_entropy(leave_out_itself(torch.zeros(1, 3), slice(2, 3)), torch.ones(1, 3) - torch.eye(3)[2:])
    assert loss.item() == pytest.approx(2 * math.log(2))
    loss, weight = weighted_cross_entropy(torch.zeros(2, 3), torch.ones(2, 3))
    assert loss.item() / weight == pytest.approx(math.log(3))
    assert weighted_cross_entropy(leave_out_itself(torch.ones(1, 1), slice(0, 1)), torch.zeros(1, 1)) == (0, 0)

"""Distances and interpolated negatives against their definitions."""

import math

import pytest
import torch

from raysys.objectives.interpolation import contrast, distances, drawn_nearer, pair_distances


def test_pair_distances_are_those_of_each_pair_with_their_gradients():
    generator = torch.Generator().manual_seed(0)
    one, two = (torch.randn(size, 5, generator=generator, dtype=torch.float64, requires_grad=True) for size in (4, 3))
    weights = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    table, loop = pair_distances(one, two), distances(one[:, None], two[None])
    torch.testing.assert_close(table, loop)
    for fast, slow in zip(
        torch.autograd.grad((table * weights).sum(), (one, two)), torch.autograd.grad((loop * weights).sum(), (one, two)), strict=True
    ):
        torch.testing.assert_close(fast, slow)


def test_far_from_the_origin_near_vectors_keep_their_distance():
    one = torch.full((1, 1024), 30.0)
    two = one.clone()
    two[0, 0] += 0.01
    assert pair_distances(one, two).item() == pytest.approx(0.01, rel=1e-3)


def test_equal_vectors_are_at_distance_zero_with_gradient_zero():
    same = torch.full((3, 4), 7.3, requires_grad=True)
    for table in (distances(same[:, None], same), pair_distances(same, same)):
        assert table.abs().max() == 0
        (gradient,) = torch.autograd.grad(table.sum(), same, retain_graph=True)
        assert gradient.abs().max() == 0


def test_what_is_no_number_stays_so():
    broken = torch.tensor([[math.nan, 0.0]])
    assert distances(broken, broken + 1).isnan().all()
    assert pair_distances(broken, broken).isnan().all()


def test_negatives_beyond_the_positive_are_drawn_nearer_by_a_constant():
    negatives = torch.tensor([[4.0, 1.0, 2.0]], requires_grad=True)
    positive = torch.tensor([2.0], requires_grad=True)
    found = drawn_nearer(negatives, positive, 0.45)
    assert found.tolist() == [pytest.approx([4 * 0.5**0.45, 1.0, 2.0])]
    by_negatives, by_positive = torch.autograd.grad(found.sum(), (negatives, positive), allow_unused=True)
    assert by_negatives.tolist() == [pytest.approx([0.5**0.45, 1.0, 1.0])]
    assert by_positive is None
    assert torch.equal(drawn_nearer(negatives, positive, 0.0), negatives)
    assert drawn_nearer(negatives, torch.zeros(1), 0.0).tolist() == negatives.tolist(), "nor where the positive is the anchor itself"


@pytest.mark.parametrize(
    ("positive", "negatives", "present", "expected"),
    [
        (1.0, [2.0, 3.0], [True, True], -math.log(math.exp(-1) / (math.exp(-1) + math.exp(-2) + math.exp(-3)))),
        (1.0, [2.0, 3.0], [True, False], math.log1p(math.exp(-1))),
        (1.0, [2.0, 3.0], [False, False], 0.0),
        (500.0, [400.0, 900.0], [True, True], 100.0),
    ],
)
def test_contrast_by_hand(positive, negatives, present, expected):
    found = contrast(torch.tensor([positive]), torch.tensor([negatives]), torch.tensor([present]), 0.0)
    assert found.item() == pytest.approx(expected, rel=1e-6, abs=1e-7)

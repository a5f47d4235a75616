"""L_XTCL against a loop over the equations, value and gradient."""

import math

import numpy as np
import pytest
import torch

from raysys.objectives.xtcl import xtcl_loss
from tests.objectives import rc3_loops

IMAGES = np.array([0, 0, 4, 4, 0, 5])
TEXTS = np.array([[1, 2], [3, 4], [5, 6], [7, 8], [9, 1], [10, 11]])
"""Rows 2 and 3 show one image, rows 0 and 4 have a text in common."""


def vectors(rows: int = 6) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(3)
    first = generator.normal(size=(rows, 3))
    spread = np.array([0.1, 3.0, 0.7, 1.0, 2.0, 0.5])[:rows, None]  # positives both nearer and further than negatives
    return {"first": first, "second": first + spread * generator.normal(size=(rows, 3))}


@pytest.mark.parametrize("power", [0.0, 0.3, 0.9], ids=["before the first step", "later", "sure"])
@pytest.mark.parametrize("block_pairs", [1, 30, 10_000])
def test_value_and_gradient_are_those_of_the_loop(power, block_pairs):
    given = vectors()
    factors: rc3_loops.Factors = {}
    expected = rc3_loops.xtcl(given, IMAGES, TEXTS, power, factors)
    assert set(factors.values()) != {1.0} if power else set(factors.values()) == {1.0}
    assert 1.0 in factors.values(), "some negatives are nearer than the positive"
    leaves = {name: torch.tensor(value, requires_grad=True) for name, value in given.items()}
    loss = xtcl_loss(*leaves.values(), torch.tensor(IMAGES), torch.tensor(TEXTS), power, block_pairs)
    loss.backward()
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    for name, slope in rc3_loops.derivatives(lambda moved: rc3_loops.xtcl(moved, IMAGES, TEXTS, power, factors), given).items():
        np.testing.assert_allclose(leaves[name].grad, slope, atol=1e-8)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows(rows):
    leaves = [torch.tensor(value, requires_grad=True) for value in vectors(2).values()]
    loss = xtcl_loss(*(leaf[:rows] for leaf in leaves), torch.tensor(IMAGES[:rows]), torch.tensor(TEXTS[:rows]), 0.9)
    loss.backward()
    expected = rc3_loops.xtcl(vectors(2), IMAGES[:2], TEXTS[:2], 0.9, {}) if rows == 2 else 0.0
    assert loss.item() == pytest.approx(expected)
    assert all(leaf.grad is not None and leaf.grad.isfinite().all() for leaf in leaves)
    assert any(leaf.grad.any() for leaf in leaves) == (rows == 2)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("power", [0.0, 0.9])
def test_vectors_that_are_all_the_same(value, power):
    leaves = [torch.full((6, 3), value, requires_grad=True) for _ in range(2)]
    loss = xtcl_loss(*leaves, torch.arange(6), torch.arange(12).view(6, 2), power)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(11))
    assert all(leaf.grad.abs().max() == 0 for leaf in leaves)


def test_related_pairs_alone_have_nothing_to_be_told_from():
    loss = xtcl_loss(*map(torch.tensor, vectors(3).values()), torch.tensor([4, 4, 4]), torch.arange(6).view(3, 2))
    assert loss.item() == 0

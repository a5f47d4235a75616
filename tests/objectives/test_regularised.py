"""L_R-XVtCL and its KL term against loops over the equations, value and gradient."""

import numpy as np
import pytest
import torch

from raysys.objectives.regularised import Triplets, facing_places, relevance_loss, rxvtcl_loss
from tests.objectives import rc3_loops

IMAGES = np.array([3, 4, 5, 5, 6])
TEXTS = np.array([[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]])
CIRCLE = np.array([[1, 4], [2, 0], [-1, 1], [4, -1], [0, 3]])
"""Rows 0 to 4 in a circle; 2 and 3 show one image."""
ALL = np.array([[m for m in range(5) if m != row] for row in range(5)])
NAMES = ("first", "second", "near_first", "near_second")


def vectors(near: np.ndarray) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(2)
    rows, found = len(near), {"first": generator.normal(size=(len(near), 3))}
    spread = np.array([0.1, 3.0, 0.7, 2.0, 0.5])[:rows, None]
    found["second"] = found["first"] + spread * generator.normal(size=(rows, 3))
    return found | {name: generator.normal(size=(*near.shape, 3)) for name in NAMES[2:]}


def triplets(given: dict[str, torch.Tensor], near: np.ndarray) -> Triplets:
    rows = len(near)
    return Triplets(*(given[name] for name in NAMES), torch.tensor(near), torch.tensor(IMAGES[:rows]), torch.tensor(TEXTS[:rows]))


def leaves_of(given: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(value, requires_grad=True) for name, value in given.items()}


@pytest.mark.parametrize("power", [0.0, 0.6], ids=["before the first step", "later"])
@pytest.mark.parametrize(("near", "block_pairs"), [(CIRCLE, 10_000), (CIRCLE, 30), (ALL, 10_000)], ids=["circle", "blocks", "all"])
def test_value_and_gradient_are_those_of_the_loop(near, power, block_pairs):
    given, factors = vectors(near), {}
    near = np.where((IMAGES[near] == IMAGES[:, None]) & (near >= 0), -1, near)
    expected = rc3_loops.rxvtcl(given, near, IMAGES, TEXTS, power, factors)
    assert {kind for _, (_, kind, _) in factors} == {"same image", "same text", "neither"}
    assert 1.0 in factors.values(), "some negatives are nearer than the positive"
    leaves = leaves_of(given)
    loss = rxvtcl_loss(triplets(leaves, near), power, block_pairs)
    loss.backward()
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    slopes = rc3_loops.derivatives(lambda moved: rc3_loops.rxvtcl(moved, near, IMAGES, TEXTS, power, factors), given)
    for name, slope in slopes.items():
        np.testing.assert_allclose(leaves[name].grad, slope, atol=1e-8)


def test_every_other_triplet_gives_six_negatives():
    near, factors = np.array([[1, 2], [2, 0], [0, 1]]), {}
    rc3_loops.rxvtcl(vectors(near), near, np.arange(1, 4), TEXTS[:3], 0.0, factors)
    assert len(factors) == 3 * 2 * 6


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows(rows):
    near = {0: np.zeros((0, 2), int), 1: np.array([[-1, -1]]), 2: np.array([[1, -1], [0, -1]])}[rows]
    given = vectors(near)
    texts = {f"text_{name}": np.random.default_rng(5).normal(size=(rows, 3)) for name in ("first", "second")}
    leaves = leaves_of(given | texts)
    loss = rxvtcl_loss(triplets(leaves, near), 0.9)
    divergence = relevance_loss(triplets(leaves, near), leaves["text_first"], leaves["text_second"])
    assert loss.item() == pytest.approx(rc3_loops.rxvtcl(given, near, IMAGES, TEXTS, 0.9, {}) if rows else 0.0)
    assert divergence.item() == pytest.approx(rc3_loops.relevance(given | texts, near))
    (loss + divergence).backward()
    assert all(leaf.grad is not None and leaf.grad.isfinite().all() for leaf in leaves.values())


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_vectors_that_are_all_the_same(value):
    leaves = {name: torch.full((5, 2, 3) if "near" in name else (5, 3), value, requires_grad=True) for name in (*NAMES, "text")}
    known = triplets(leaves, CIRCLE)
    (rxvtcl_loss(known, 0.9) + relevance_loss(known, leaves["text"], leaves["text"])).backward()
    assert all(leaf.grad.abs().max() == 0 for leaf in leaves.values())


@pytest.mark.parametrize("detach", [False, True])
def test_the_relevance_term_is_that_of_the_loop(detach):
    generator = np.random.default_rng(8)
    given = vectors(CIRCLE) | {f"text_{name}": generator.normal(size=(5, 3)) for name in ("first", "second")}
    leaves = leaves_of(given)
    loss = relevance_loss(triplets(leaves, CIRCLE), leaves["text_first"], leaves["text_second"], detach)
    loss.backward()
    assert loss.item() == pytest.approx(rc3_loops.relevance(given, CIRCLE), rel=1e-12)
    for name, slope in rc3_loops.derivatives(lambda moved: rc3_loops.relevance(moved, CIRCLE), given).items():
        if name.startswith("text_") and detach:
            assert leaves[name].grad is None
        else:
            np.testing.assert_allclose(leaves[name].grad, slope, atol=1e-8)


def test_the_direction_of_the_divergence():
    """KL(P_vtr ‖ P_tr) of P_vtr = (½, ¼, ¼) and P_tr = (⅓, ⅓, ⅓) is 0.0589; the other way round it would be 0.0566."""
    one = torch.zeros(2, 1)
    further = torch.full((2, 1, 1), float(np.log(2)))
    known = Triplets(one, one, further, further, torch.tensor([[1], [0]]), torch.tensor([1, 2]), torch.tensor([[1, 2], [3, 4]]))
    assert relevance_loss(known, one, one).item() == pytest.approx(0.5 * np.log(1.5) + 0.5 * np.log(0.75), rel=1e-5)


def test_places_at_which_the_near_ones_have_a_row():
    near = torch.tensor([[1, -1, 2], [0, 2, -1], [1, 3, -1], [-1, -1, -1]])
    found = facing_places(near)
    assert found.tolist() == [[3, -1, -1], [0, 6, -1], [4, -1, -1], [-1, -1, -1]]


def test_triplets_of_some_rows():
    some = triplets({name: torch.tensor(value) for name, value in vectors(CIRCLE).items()}, CIRCLE).of(torch.tensor([0, 1, 4]))
    assert some.near.tolist() == [[1, 2], [-1, 0], [0, -1]]
    assert some.image_ids.tolist() == [3, 4, 6]

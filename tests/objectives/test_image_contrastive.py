import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raysys.objectives.image_contrastive import nt_xent
from tests.objectives.cases import (
    BLOCKS,
    assert_computed_in_float32,
    cosine,
    image_ids,
    log_softmax,
    loss_and_gradients,
    quick,
    same,
    seeds,
    sizes,
    tensors,
    vectors,
)


def loss_by_loops(view_1, view_2, temperature, ids):
    rows = len(view_1)
    views = [*view_1, *view_2]
    total = 0.0
    for i in range(2 * rows):
        candidates = {k: cosine(views[i], views[k]) / temperature for k in range(2 * rows) if k != i}
        positives = [k for k in candidates if same(ids, i % rows, k % rows)]
        total -= sum(log_softmax(candidates, k) for k in positives) / len(positives)
    return total / (2 * rows)


@quick
@given(seeds, sizes, st.sampled_from([0.05, 0.1, 1.0]), BLOCKS)
def test_loss_equals_the_equation(seed, rows, temperature, pairs):
    one, two, ids = vectors(seed, rows), vectors(seed + 1, rows), image_ids(seed, rows)
    loss = nt_xent(*tensors(one, two), temperature, torch.from_numpy(ids), pairs)
    assert loss.item() == pytest.approx(loss_by_loops(one, two, temperature, ids), rel=1e-9, abs=1e-12)


@quick
@given(seeds, sizes, st.floats(1e-3, 1e3))
def test_order_of_rows_and_of_views_and_lengths_of_vectors_do_not_matter(seed, rows, factor):
    one, two, ids = tensors(vectors(seed, rows), vectors(seed + 1, rows), image_ids(seed, rows))
    loss = nt_xent(one, two, 0.1, ids)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(rows))
    torch.testing.assert_close(nt_xent(one[order], two[order], 0.1, ids[order]), loss)
    torch.testing.assert_close(nt_xent(two, one, 0.1, ids), loss)
    torch.testing.assert_close(nt_xent(one * factor, two / factor, 0.1, ids), loss)


@pytest.mark.parametrize("pairs", [1, 24, 1000])
def test_gradients(pairs):
    one, two, ids = tensors(vectors(0, 5), vectors(1, 5), image_ids(0, 5))
    temperature = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    inputs = (one.requires_grad_(), two.requires_grad_(), temperature)
    assert torch.autograd.gradcheck(lambda a, b, t: nt_xent(a, b, t, ids, pairs), inputs)


def test_one_image_has_nothing_to_be_told_from():
    loss, gradients = loss_and_gradients(nt_xent, torch.randn(1, 4), torch.randn(1, 4), temperature=0.1, image_ids=torch.ones(1))
    assert loss == 0
    assert all(gradient.eq(0).all() for gradient in gradients)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_and_zero_vectors(value):
    rows = torch.full((4, 3), value)
    loss, gradients = loss_and_gradients(nt_xent, rows, rows, temperature=0.01, image_ids=torch.zeros(4))
    assert loss == pytest.approx(np.log(7), rel=1e-6)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert value or all(gradient.eq(0).all() for gradient in gradients)


def test_views_of_the_same_image_are_never_negatives():
    """Rows 0 and 1 show one image: with a common image nothing pushes their views apart, without it something does."""

    def pull(ids):
        """Change of the loss as row 1 moves towards row 0."""
        one = torch.eye(3, dtype=torch.float64)
        _, (gradient, _) = loss_and_gradients(nt_xent, one, one.clone(), temperature=0.5, image_ids=torch.tensor(ids))
        return gradient[1, 0].item()

    assert pull([7, 7, 9]) < 0 < pull([7, 8, 9])
    assert pull([0, 0, 9]) == pull([7, 8, 9]), "no image is like no other"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype):
    assert_computed_in_float32(nt_xent, dtype)

"""The cluster loss against the definition in plain loops."""

import numpy as np
import pytest
import torch
from hypothesis import given

from raysys.objectives.cluster import cluster_loss
from raysys.objectives.negatives import negative_rows
from tests.objectives.cases import cosine, image_ids, loss_and_gradients, quick, seeds, sizes, tensors, vectors


def by_definition(grounded, others, ids, has_other, draws, margin):
    negatives, hinges = negative_rows(torch.from_numpy(ids), torch.from_numpy(draws)).tolist(), []
    for row, negative in enumerate(negatives):
        if has_other[row] and negative >= 0:
            hinges.append(max(0.0, margin - cosine(grounded[row], others[row]) + cosine(grounded[row], grounded[negative])))
    return sum(hinges) / len(hinges) if hinges else 0.0


def case(seed, rows):
    generator = np.random.default_rng([seed, 4])
    ids = image_ids(seed, rows)
    return vectors(seed, rows), vectors(seed + 1, rows), ids, generator.random(rows) < 0.7, generator.random(rows, dtype=np.float32)


@quick
@given(seed=seeds, rows=sizes)
def test_it_is_the_definition(seed, rows):
    inputs = case(seed, rows)
    assert cluster_loss(*tensors(*inputs), 0.5).item() == pytest.approx(by_definition(*inputs, 0.5), rel=1e-9, abs=1e-12)


def test_its_gradient_is_that_of_finite_differences():
    one, two, ids, has_other, draws = tensors(*case(3, 9))
    inputs = (one.requires_grad_(), two.requires_grad_())
    assert 0 < int(((negative_rows(ids, draws) >= 0) & has_other).sum()) < 9, "some rows count, and some do not"
    assert torch.autograd.gradcheck(lambda a, b: cluster_loss(a, b, ids, has_other, draws, 0.5), inputs)


def test_sentences_that_lie_as_they_should_have_no_loss_and_a_tie_with_the_margin_no_gradient():
    grounded, ids, all_of_them = torch.eye(3), torch.tensor([1, 2, 3]), torch.ones(3, dtype=torch.bool)
    for margin in (0.5, 1.0):  # of 1 the cosines 1 and 0 just reach
        loss, gradients = loss_and_gradients(
            lambda a, b, margin=margin: cluster_loss(a, b, ids, all_of_them, torch.rand(3), margin), grounded, 2 * grounded
        )
        assert loss == 0
        assert not any(gradient.any() for gradient in gradients)
    assert cluster_loss(grounded, grounded, ids, all_of_them, torch.rand(3), 1.25).item() == pytest.approx(0.25)


@pytest.mark.parametrize("ids", [[0, 0, 0], [4, 4, 4], [4, 0, 4]])
@pytest.mark.parametrize("length", [0.0, 1.0])
def test_without_negatives_it_is_zero_with_zero_gradient(ids, length):
    has_other = torch.ones(3, dtype=torch.bool)
    loss, gradients = loss_and_gradients(
        lambda a, b: cluster_loss(a, b, torch.tensor(ids), has_other, torch.rand(3)), length * torch.randn(3, 4), torch.randn(3, 4)
    )
    assert loss == 0
    assert all(gradient.shape == (3, 4) and not gradient.any() for gradient in gradients)


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_constant_vectors_give_the_margin_and_no_gradient(value):
    same = torch.full((4, 3), value, dtype=torch.float64)
    all_of_them = torch.ones(4, dtype=torch.bool)
    loss, gradients = loss_and_gradients(lambda a, b: cluster_loss(a, b, torch.arange(1, 5), all_of_them, torch.rand(4), 0.3), same, same)
    assert loss == pytest.approx(0.3)
    for gradient in gradients:
        torch.testing.assert_close(gradient, torch.zeros_like(gradient))


def test_rows_that_do_not_count_change_nothing():
    one, two, ids, has_other, draws = tensors(*case(5, 8))
    ids, has_other = torch.tensor([1, 2, 1, 3, 0, 0, 0, 0]), torch.tensor([True] * 3 + [False] + [True, False] * 2)
    whole, gradients = loss_and_gradients(lambda a, b: cluster_loss(a, b, ids, has_other, draws), one, two)
    part, of_part = loss_and_gradients(lambda a, b: cluster_loss(a, b, ids[:4], has_other[:4], draws[:4]), one[:4], two[:4])
    assert whole == pytest.approx(part)
    for gradient, other in zip(gradients, of_part, strict=True):
        torch.testing.assert_close(gradient, torch.cat([other, torch.zeros_like(other)]))

"""The cross-modal losses against their definitions in plain loops."""

import numpy as np
import pytest
import torch
from hypothesis import given

from raysys.objectives.negatives import negative_rows
from raysys.objectives.ranking import cross_modal_loss, ranking_loss
from tests.objectives.cases import BLOCKS, cosine, image_ids, loss_and_gradients, quick, seeds, sizes, tensors, vectors


def cross_modal_by_definition(projected, images, ids, draws, margin):
    negatives = negative_rows(torch.from_numpy(ids), torch.from_numpy(draws)).tolist()
    hinges = [
        max(0.0, margin + cosine(projected[row], images[negative]) - cosine(projected[row], images[row]))
        for row, negative in enumerate(negatives)
        if negative >= 0
    ]
    return sum(hinges) / len(hinges) if hinges else 0.0


def ranking_by_definition(projected, images, ids, margin):
    total, counted = 0.0, 0
    for i in range(len(ids)):
        others = [j for j in range(len(ids)) if ids[i] and ids[j] not in (0, ids[i])]
        own = cosine(projected[i], images[i])
        total += sum(max(0.0, margin - own + cosine(projected[i], images[j])) for j in others)
        total += sum(max(0.0, margin - own + cosine(projected[j], images[i])) for j in others)
        counted += bool(others)
    return total / counted if counted else 0.0


def case(seed, rows):
    draws = np.random.default_rng([seed, 5]).random(rows, dtype=np.float32)
    return vectors(seed, rows), vectors(seed + 1, rows), image_ids(seed, rows), draws


@quick
@given(seed=seeds, rows=sizes, block_pairs=BLOCKS)
def test_they_are_the_definitions(seed, rows, block_pairs):
    projected, images, ids, draws = case(seed, rows)
    found = cross_modal_loss(*tensors(projected, images, ids, draws), 0.4)
    assert found.item() == pytest.approx(cross_modal_by_definition(projected, images, ids, draws, 0.4), rel=1e-9, abs=1e-12)
    found = ranking_loss(*tensors(projected, images, ids), 0.4, block_pairs)
    assert found.item() == pytest.approx(ranking_by_definition(projected, images, ids, 0.4), rel=1e-9, abs=1e-12)


LOSSES = {
    "cross_modal": lambda projected, images, ids, draws, margin=0.5: cross_modal_loss(projected, images, ids, draws, margin),
    "ranking": lambda projected, images, ids, draws, margin=0.5: ranking_loss(projected, images, ids, margin),
    "ranking in blocks": lambda projected, images, ids, draws, margin=0.5: ranking_loss(projected, images, ids, margin, 12),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_their_gradients_are_those_of_finite_differences(loss):
    projected, images, ids, draws = tensors(*case(8, 9))
    assert torch.autograd.gradcheck(lambda rows: LOSSES[loss](rows, images, ids, draws), projected.requires_grad_())


@pytest.mark.parametrize("loss", LOSSES)
def test_pictures_are_constants(loss):
    projected, images, ids, draws = tensors(*case(8, 9))
    LOSSES[loss](projected.requires_grad_(), images.requires_grad_(), ids, draws).backward()
    assert projected.grad.any()
    assert images.grad is None


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("ids", [[0, 0, 0], [4, 4, 4], [4, 0, 4]])
def test_without_other_pictures_they_are_zero_with_zero_gradient(loss, ids):
    found, (gradient,) = loss_and_gradients(
        lambda rows: LOSSES[loss](rows, torch.randn(3, 4), torch.tensor(ids), torch.rand(3)), torch.randn(3, 4)
    )
    assert found == 0
    assert gradient.shape == (3, 4)
    assert not gradient.any()


@pytest.mark.parametrize("loss", LOSSES)
def test_constant_or_zero_vectors_are_no_trouble(loss):
    ids, draws = torch.arange(1, 5), torch.rand(4)
    for projected in (torch.ones(4, 3), torch.zeros(4, 3)):
        for images in (torch.ones(4, 3), torch.zeros(4, 3)):
            found, (gradient,) = loss_and_gradients(lambda rows, images=images: LOSSES[loss](rows, images, ids, draws, 0.2), projected)
            assert found == pytest.approx(0.2 * (6 if "ranking" in loss else 1))
            torch.testing.assert_close(gradient, torch.zeros(4, 3))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_tie_with_the_margin_has_no_gradient(loss):
    same = torch.eye(4)
    found, (gradient,) = loss_and_gradients(lambda rows: LOSSES[loss](rows, torch.eye(4), torch.arange(1, 5), torch.rand(4), 1.0), same)
    assert found == 0
    assert not gradient.any()

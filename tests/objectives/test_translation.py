"""The supervised caption–caption loss against the definition in plain loops."""

import numpy as np
import pytest
import torch
from hypothesis import given

from raysys.objectives.translation import translation_loss
from tests.objectives.cases import BLOCKS, cosine, log_softmax, loss_and_gradients, quick, seeds, sizes, tensors, vectors


def by_definition(captions: np.ndarray, temperature: float, concepts: np.ndarray) -> float:
    total, pairs = 0.0, 0
    for i in range(len(captions)):
        logits = {k: cosine(captions[i], captions[k]) / temperature for k in range(len(captions)) if k != i}
        for j in logits:
            if concepts[i] == concepts[j]:
                total, pairs = total - log_softmax(logits, j), pairs + 1
    return total / pairs if pairs else 0.0


@quick
@given(seed=seeds, rows=sizes, block_pairs=BLOCKS)
def test_it_is_the_definition(seed, rows, block_pairs):
    captions, concepts = vectors(seed, rows), np.random.default_rng(seed).integers(-3, 3, rows)
    found = translation_loss(*tensors(captions), 0.2, torch.from_numpy(concepts), block_pairs)
    assert found.item() == pytest.approx(by_definition(captions, 0.2, concepts), rel=1e-9, abs=1e-12)


def test_its_gradient_is_that_of_finite_differences():
    captions, temperature = torch.randn(6, 4, dtype=torch.float64), torch.tensor(0.3, dtype=torch.float64)
    concepts = torch.tensor([1, 1, 2, 3, 2, 1])
    inputs = (captions.requires_grad_(), temperature.requires_grad_())
    assert torch.autograd.gradcheck(lambda one, two: translation_loss(one, two, concepts, 12), inputs)


def test_without_two_captions_of_a_concept_it_is_zero_and_without_gradient():
    loss, (gradient,) = loss_and_gradients(lambda rows: translation_loss(rows, 0.1, torch.arange(4)), torch.randn(4, 3))
    assert loss == 0
    assert gradient.count_nonzero() == 0


def test_translations_that_agree_leave_nothing_to_learn():
    captions = torch.eye(4).repeat(2, 1)
    assert translation_loss(captions, 0.01, torch.arange(4).repeat(2)).item() == pytest.approx(0, abs=1e-6)

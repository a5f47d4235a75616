import numpy as np
import pytest
import torch
from hypothesis import given

from raysys.objectives.cloze import cloze_loss
from tests.objectives.cases import loss_and_gradients, quick, seeds, sizes


@quick
@given(seeds, sizes)
def test_every_predicted_token_weighs_the_same(seed, rows):
    random = np.random.default_rng(seed)
    losses = [random.random(random.integers(0, 4)).tolist() for _ in range(rows)]
    tokens = [loss for sample in losses for loss in sample]
    sums, counts = torch.tensor([sum(sample) for sample in losses], dtype=torch.float64), torch.tensor([len(sample) for sample in losses])
    loss = cloze_loss(sums, counts)
    assert loss.item() == pytest.approx(sum(tokens) / len(tokens) if tokens else 0, rel=1e-12)
    order = torch.from_numpy(random.permutation(rows))
    torch.testing.assert_close(cloze_loss(sums[order], counts[order]), loss)


def test_gradients():
    counts = torch.tensor([2, 0, 3])
    assert torch.autograd.gradcheck(lambda sums: cloze_loss(sums, counts), torch.rand(3, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_nothing_predicted_gives_zero_loss_and_gradient(rows):
    loss, (gradient,) = loss_and_gradients(cloze_loss, torch.zeros(rows), counts=torch.zeros(rows, dtype=torch.int64))
    assert loss == 0
    assert gradient.eq(0).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_summed_in_float32(dtype):
    loss = cloze_loss(torch.full((70000,), 1.0, dtype=dtype), torch.ones(70000, dtype=torch.int64))
    assert loss.dtype == torch.float32
    assert loss.item() == 1


def test_a_broken_loss_is_not_hidden():
    assert cloze_loss(torch.tensor([float("nan"), 1.0]), torch.tensor([1, 1])).isnan()

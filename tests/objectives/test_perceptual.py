"""The perceptual loss against NumPy's correlation of all pairs and against finite differences."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raysys.objectives import perceptual
from raysys.objectives.perceptual import perceptual_loss
from tests.objectives.cases import BLOCKS, cosine, loss_and_gradients, quick, seeds, tensors, vectors


def by_definition(grounded, images, pairs):
    x = [cosine(grounded[k], grounded[other]) for k, other in pairs]
    y = [cosine(images[k], images[other]) for k, other in pairs]
    return -np.corrcoef(x, y)[0, 1]


def all_pairs(usable):
    return list(itertools.combinations(np.flatnonzero(usable), 2))


def case(seed, rows):
    usable = np.random.default_rng([seed, 6]).random(rows) < 0.7
    usable[:3] = True
    return vectors(seed, rows), vectors(seed + 1, rows, 7), usable


@quick
@given(seed=seeds, rows=st.integers(3, 10), block_pairs=BLOCKS)
def test_it_is_the_correlation_of_all_pairs_of_usable_rows(seed, rows, block_pairs):
    inputs = case(seed, rows)
    loss, constant = perceptual_loss(*tensors(*inputs), block_pairs=block_pairs)
    assert loss.item() == pytest.approx(by_definition(*inputs[:2], all_pairs(inputs[2])), rel=1e-9, abs=1e-9)
    assert constant == 0


@quick
@given(seed=seeds, rows=st.integers(4, 10), share=st.floats(0, 1), block_pairs=st.sampled_from([1, 512, 2**24]))
def test_sampled_pairs_are_different_pairs_and_the_correlation_is_theirs(seed, rows, share, block_pairs):
    inputs = case(seed, rows)
    every = all_pairs(inputs[2])
    pairs = min(3 + int(share * len(every)), len(every))
    draws = torch.rand(rows, generator=torch.Generator().manual_seed(seed))
    loss, _ = perceptual_loss(*tensors(*inputs), pairs, draws, block_pairs)
    if pairs == len(every):
        chosen = every
    else:
        kept = torch.from_numpy(inputs[2]).nonzero()[:, 0]
        sample = perceptual._sample(draws[kept], pairs)
        chosen = list(zip(kept[sample.first].tolist(), kept[sample.second].tolist(), strict=True))
        assert len({frozenset(pair) for pair in chosen}) == pairs == sum(one != other for one, other in chosen)
    assert loss.item() == pytest.approx(by_definition(*inputs[:2], chosen), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 8, 9])
def test_pairs_are_different_up_to_the_last_but_one(rows):
    sample = perceptual._sample(torch.rand(rows), rows * (rows - 1) // 2 - 1)
    assert len({frozenset(pair) for pair in zip(sample.first.tolist(), sample.second.tolist(), strict=True)}) == len(sample.first)


def test_every_pair_is_as_likely_to_be_sampled():
    generator, counts = torch.Generator().manual_seed(0), np.zeros((6, 6))
    for _ in range(3000):
        sample = perceptual._sample(torch.rand(6, generator=generator), 4)
        for one, other in zip(sample.first.tolist(), sample.second.tolist(), strict=True):
            counts[min(one, other), max(one, other)] += 1
    shares = counts[np.triu_indices(6, 1)] / (3000 * 4 / 15)
    assert shares == pytest.approx(np.ones(15), abs=0.15)  # 5 standard deviations


def test_sampling_needs_draws():
    with pytest.raises(ValueError, match="draws"):
        perceptual_loss(torch.randn(5, 2), torch.randn(5, 2), torch.ones(5, dtype=torch.bool), 3)


@pytest.mark.parametrize("block_pairs", [1, 20, 2**24])
@pytest.mark.parametrize("pairs", [None, 7])
def test_its_gradient_is_that_of_finite_differences(pairs, block_pairs):
    grounded, images, usable = tensors(*case(2, 8))
    draws = torch.rand(8)
    assert torch.autograd.gradcheck(
        lambda rows: perceptual_loss(rows, images, usable, pairs, draws, block_pairs)[0], grounded.requires_grad_()
    )


def one_dimension(*values):
    return torch.tensor(values, dtype=torch.float64)[:, None]


CONSTANT = {
    "all sentences alike": (torch.ones(5, 3), torch.randn(5, 4)),
    "all pictures alike": (torch.randn(5, 3), torch.ones(5, 4)),
    "both": (torch.ones(5, 3), torch.ones(5, 4)),
    "sentences of no length": (torch.zeros(5, 3), torch.randn(5, 4)),
    "sentences alike but for rounding": (torch.randn(2048).double() * torch.rand(60, 1).double(), torch.randn(60, 8)),
    "pictures of no length": (torch.randn(5, 3), torch.zeros(5, 4)),
    "two rows": (torch.randn(2, 3), torch.randn(2, 4)),
    "one row": (torch.randn(1, 3), torch.randn(1, 4)),
    "no row": (torch.randn(0, 3), torch.randn(0, 4)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("block_pairs", [1, 2**24])
@pytest.mark.parametrize("which", CONSTANT)
def test_what_is_constant_gives_zero_with_zero_gradient_and_says_so(which, block_pairs, dtype):
    grounded, images = (values.to(dtype) for values in CONSTANT[which])
    grounded = grounded.clone().requires_grad_()
    loss, constant = perceptual_loss(grounded, images, torch.ones(len(grounded), dtype=torch.bool), block_pairs=block_pairs)
    assert (loss.item(), constant.item()) == (0, 1)
    assert not constant.requires_grad
    loss.backward()
    assert grounded.grad.shape == grounded.shape
    assert not grounded.grad.any()


def test_no_usable_row_is_constant_too_and_the_others_do_not_matter():
    grounded = torch.full((4, 3), torch.nan, requires_grad=True)
    loss, constant = perceptual_loss(grounded, torch.randn(4, 2), torch.zeros(4, dtype=torch.bool))
    loss.backward()
    assert (loss.item(), constant.item(), grounded.grad.count_nonzero()) == (0, 1, 0)


def test_what_is_not_a_number_is_not_hidden():
    grounded = torch.randn(5, 3)
    grounded[2] = torch.nan
    loss, constant = perceptual_loss(grounded, torch.randn(5, 2), torch.ones(5, dtype=torch.bool))
    assert loss.isnan()
    assert constant == 0


@quick
@given(seed=seeds)
def test_sentences_that_are_as_alike_as_their_pictures_reach_the_least_loss(seed):
    images = torch.from_numpy(vectors(seed, 7))
    loss, (gradient,) = loss_and_gradients(lambda rows: perceptual_loss(rows, images, torch.ones(7, dtype=torch.bool))[0], 3 * images)
    assert loss == pytest.approx(-1)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-7, rtol=0)


def test_correlations_of_halves_do_not_average_to_that_of_the_whole():
    grounded, images, _ = tensors(*case(4, 12))
    usable = torch.ones(12, dtype=torch.bool)
    whole, _ = perceptual_loss(grounded, images, usable)
    halves = [perceptual_loss(grounded[part], images[part], usable[part])[0] for part in (slice(0, 6), slice(6, 12))]
    assert abs(whole - torch.stack(halves).mean()) > 0.01


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype):
    grounded, images, usable = torch.randn(20, 16).to(dtype), torch.randn(20, 16).to(dtype), torch.ones(20, dtype=torch.bool)
    exact, _ = perceptual_loss(grounded.double(), images.double(), usable)
    with torch.autocast("cpu", dtype=dtype):
        loss, _ = perceptual_loss(grounded, images, usable)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(exact.item(), rel=1e-5)


def test_a_small_spread_about_a_large_mean_keeps_its_digits():
    generator = torch.Generator().manual_seed(0)
    grounded = torch.ones(200, 64) + 0.01 * torch.randn(200, 64, generator=generator)
    images = torch.randn(200, 64, generator=generator)
    usable = torch.ones(200, dtype=torch.bool)
    exact, (gradient,) = loss_and_gradients(lambda rows: perceptual_loss(rows, images.double(), usable)[0], grounded.double())
    for block_pairs in (1000, 2**24):
        loss, (found,) = loss_and_gradients(
            lambda rows, size=block_pairs: perceptual_loss(rows, images, usable, block_pairs=size)[0], grounded
        )
        assert loss == pytest.approx(exact, abs=2e-3)
        assert (found.double() - gradient).norm() < 1e-2 * gradient.norm()

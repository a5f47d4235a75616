import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raysys.objectives.image_caption import info_nce, pairwise_sigmoid
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


def loss_by_loops(images, captions, temperature, ids):
    total = 0.0
    for queries, answers in ((images, captions), (captions, images)):
        for i, query in enumerate(queries):
            candidates = {k: cosine(query, answer) / temperature for k, answer in enumerate(answers)}
            positives = [k for k in candidates if same(ids, i, k)]
            total -= sum(log_softmax(candidates, k) for k in positives) / len(positives)
    return total / (2 * len(images))


@quick
@given(seeds, sizes, st.sampled_from([0.05, 0.1, 1.0]), BLOCKS)
def test_loss_equals_the_equation(seed, rows, temperature, pairs):
    images, captions, ids = vectors(seed, rows), vectors(seed + 1, rows), image_ids(seed, rows)
    loss = info_nce(*tensors(images, captions), temperature, torch.from_numpy(ids), pairs)
    assert loss.item() == pytest.approx(loss_by_loops(images, captions, temperature, ids), rel=1e-9, abs=1e-12)


@quick
@given(seeds, sizes, st.floats(1e-3, 1e3))
def test_order_of_rows_direction_and_lengths_of_vectors_do_not_matter(seed, rows, factor):
    images, captions, ids = tensors(vectors(seed, rows), vectors(seed + 1, rows), image_ids(seed, rows))
    loss = info_nce(images, captions, 0.1, ids)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(rows))
    torch.testing.assert_close(info_nce(images[order], captions[order], 0.1, ids[order]), loss)
    torch.testing.assert_close(info_nce(captions, images, 0.1, ids), loss)
    torch.testing.assert_close(info_nce(images * factor, captions / factor, 0.1, ids), loss)


@pytest.mark.parametrize("pairs", [1, 12, 1000])
def test_gradients(pairs):
    images, captions, ids = tensors(vectors(0, 5), vectors(1, 5), image_ids(0, 5))
    temperature = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    inputs = (images.requires_grad_(), captions.requires_grad_(), temperature)
    assert torch.autograd.gradcheck(lambda a, b, t: info_nce(a, b, t, ids, pairs), inputs)


def test_one_pair_has_nothing_to_be_told_from():
    loss, gradients = loss_and_gradients(info_nce, torch.randn(1, 4), torch.randn(1, 4), temperature=0.1, image_ids=torch.zeros(1))
    assert loss == 0
    assert all(gradient.eq(0).all() for gradient in gradients)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_and_zero_vectors(value):
    rows = torch.full((4, 3), value)
    loss, gradients = loss_and_gradients(info_nce, rows, rows, temperature=0.01, image_ids=torch.zeros(4))
    assert loss == pytest.approx(np.log(4), rel=1e-6)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert value or all(gradient.eq(0).all() for gradient in gradients)


def test_captions_of_the_same_image_are_never_negatives():
    def pull(ids):
        """Change of the loss as caption 1 moves towards image 0."""
        vectors = torch.eye(3, dtype=torch.float64)
        _, (_, gradient) = loss_and_gradients(info_nce, vectors, vectors.clone(), temperature=0.5, image_ids=torch.tensor(ids))
        return gradient[1, 0].item()

    assert pull([7, 7, 9]) < 0 < pull([7, 8, 9])
    assert pull([0, 0, 9]) == pull([7, 8, 9]), "no image is like no other"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype):
    assert_computed_in_float32(info_nce, dtype)


def weights_by_loops(logits, negatives, hardness):
    drawn = {k: math.exp(hardness * logits[k]) for k in negatives}
    return {k: value * len(negatives) / sum(drawn.values()) for k, value in drawn.items()}


def hard_loss_by_loops(images, captions, temperature, bias, ids, hardness):
    """Softmax where there is no bias, else sigmoid; hard negatives weighted, both ways."""
    total = weight = 0.0
    for queries, answers in ((images, captions), (captions, images)):
        for i, query in enumerate(queries):
            logits = [cosine(query, answer) / temperature + (bias or 0.0) for answer in answers]
            positives = [k for k in range(len(logits)) if same(ids, i, k)]
            counted = weights_by_loops(logits, [k for k in range(len(logits)) if k not in positives], hardness)
            if bias is None:
                below = sum(counted.get(k, 1.0) * math.exp(logit) for k, logit in enumerate(logits))
                total -= sum(math.log(math.exp(logits[k]) / below) for k in positives) / len(positives)
                weight += 1
            else:
                for k, logit in enumerate(logits):
                    total += counted.get(k, 1.0) * math.log1p(math.exp(-logit if k in positives else logit))
                weight += len(positives)
    return total / weight


@quick
@given(seeds, sizes, st.sampled_from([0.2, 1.0]), st.sampled_from([None, -3.0, 0.5]), st.sampled_from([0.0, 0.5, 2.0]), BLOCKS)
def test_sigmoid_and_hard_negatives_equal_the_equations(seed, rows, temperature, bias, hardness, pairs):
    images, captions, ids = vectors(seed, rows), vectors(seed + 1, rows), image_ids(seed, rows)
    given_tensors = tensors(images, captions)
    expected = hard_loss_by_loops(images, captions, temperature, bias, ids, hardness)
    if bias is None:
        loss = info_nce(*given_tensors, temperature, torch.from_numpy(ids), pairs, hardness)
    else:
        loss = pairwise_sigmoid(*given_tensors, temperature, bias, torch.from_numpy(ids), pairs, hardness)
    assert loss.item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_sigmoid_loss_as_it_is_printed():
    """−(1/N) Σ_i Σ_j log σ(z_ij (t x_i · y_j + b))."""
    x, y = (torch.nn.functional.normalize(torch.randn(6, 4, dtype=torch.float64)) for _ in range(2))
    z = 2 * torch.eye(6) - torch.ones(6, 6)
    printed = -torch.nn.functional.logsigmoid(z * (10 * x @ y.T - 7)).sum() / 6
    torch.testing.assert_close(pairwise_sigmoid(x, y, 0.1, -7.0, torch.arange(1, 7)), printed)


@pytest.mark.parametrize("pairs", [1, 12, 1000])
def test_gradients_of_the_sigmoid_loss(pairs):
    images, captions, ids = tensors(vectors(0, 5), vectors(1, 5), image_ids(0, 5))
    temperature, bias = (torch.tensor([value], dtype=torch.float64, requires_grad=True) for value in (0.3, -2.0))
    inputs = (images.requires_grad_(), captions.requires_grad_(), temperature, bias)
    assert torch.autograd.gradcheck(lambda a, b, t, c: pairwise_sigmoid(a, b, t, c, ids, pairs), inputs)


def test_captions_of_the_same_image_are_never_negatives_of_the_sigmoid_nor_hard_ones():
    def pull(loss, ids):
        vectors = torch.eye(3, dtype=torch.float64)
        _, (_, gradient) = loss_and_gradients(loss, vectors, vectors.clone(), image_ids=torch.tensor(ids))
        return gradient[1, 0].item()

    def hard(a, b, image_ids):
        return info_nce(a, b, 0.5, image_ids, hardness=2.0)

    def sigmoid(a, b, image_ids):
        return pairwise_sigmoid(a, b, 0.5, -1.0, image_ids, hardness=2.0)

    for loss in (hard, sigmoid):
        assert pull(loss, [7, 7, 9]) < 0 < pull(loss, [7, 8, 9])
        assert pull(loss, [0, 0, 9]) == pull(loss, [7, 8, 9]), "no image is like no other"


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_and_zero_vectors_in_the_sigmoid_loss(value):
    rows = torch.full((4, 3), value)
    loss, gradients = loss_and_gradients(pairwise_sigmoid, rows, rows, temperature=1.0, bias=0.0, image_ids=torch.zeros(4), hardness=1.0)
    assert loss == pytest.approx(math.log1p(math.exp(-value)) + 3 * math.log1p(math.exp(value)), rel=1e-6)
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_the_sigmoid_loss_in_half_precision_is_computed_in_float32():
    def loss(images, captions, temperature, image_ids):
        return pairwise_sigmoid(images, captions, temperature, torch.tensor([-9.7]), image_ids, hardness=0.1)

    assert_computed_in_float32(loss, torch.bfloat16)

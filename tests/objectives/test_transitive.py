import functools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raysys.models.queue import Neighbours
from raysys.objectives.transitive import transitive_loss, transitive_similarity
from tests.objectives.cases import (
    BLOCKS,
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

variants = st.sampled_from(["product", "rescaled"])
margins = st.sampled_from([0.0, 0.2, 0.4, 0.9])


def pictures(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of images and of their captions, mostly alike."""
    return vectors(seed, rows, 3) + 1, vectors(seed + 1, rows, 3) * 0.5 + 1


def similarities(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """α^v of all pairs and α^x of the diagonal, mostly positive, as cosines of related vectors are."""
    images, captions = pictures(seed, rows)
    return (
        np.array([[cosine(a, b) for b in images] for a in images]),
        np.array([cosine(a, b) for a, b in zip(images, captions, strict=True)]),
    )


def alpha_by_loops(image_similarity, image_caption, margin, variant):
    rows = len(image_caption)
    confidence = list(image_caption)
    if variant == "rescaled":
        low, high = min(image_caption), max(image_caption)
        confidence = [0.75 + 0.5 * (x - low) / (high - low) if high > low else 1.0 for x in image_caption]
    raw = {(i, j): image_similarity[i][j] * confidence[i] * confidence[j] for i in range(rows) for j in range(rows) if i != j}
    if variant == "rescaled" and raw and max(raw.values()) > 0:
        greatest = max(raw.values())
        raw = {pair: value / greatest for pair, value in raw.items()}
    alpha = np.zeros((rows, rows))
    for pair, value in raw.items():
        alpha[pair] = min(1.0, max(0.0, value - margin) / (1 - margin))
    return alpha


def loss_by_loops(beta, alpha, temperature, ids):
    rows, total, weight = len(beta), 0.0, 0.0
    for i in range(rows):
        candidates = {k: beta[i][k] / temperature for k in range(rows) if k != i}
        for j in candidates:
            target = 1.0 if same(ids, i, j) else alpha[i][j]
            total -= target * log_softmax(candidates, j)
            weight += target
    return total / weight if weight else 0.0


@quick
@given(seeds, sizes, variants, margins)
def test_alpha_equals_the_equation(seed, rows, variant, margin):
    given_arrays = similarities(seed, rows)
    alpha = transitive_similarity(*tensors(*given_arrays), margin, variant)
    np.testing.assert_allclose(alpha.numpy(), alpha_by_loops(*given_arrays, margin, variant), atol=1e-9)
    assert alpha.diagonal().eq(0).all()
    assert alpha.ge(0).all()
    assert alpha.le(1).all()
    if variant == "rescaled" and rows > 1 and max(similarities(seed, rows)[0][~np.eye(rows, dtype=bool)]) > 0:
        assert alpha.max() == 1


@quick
@given(seeds, sizes, variants)
def test_alpha_moves_with_its_rows(seed, rows, variant):
    image_similarity, image_caption = tensors(*similarities(seed, rows))
    order = torch.from_numpy(np.random.default_rng(seed).permutation(rows))
    moved = transitive_similarity(image_similarity[order][:, order], image_caption[order], 0.4, variant)
    torch.testing.assert_close(moved, transitive_similarity(image_similarity, image_caption, 0.4, variant)[order][:, order])


def test_alpha_is_constant_and_float32():
    image_similarity = torch.rand(4, 4, requires_grad=True)
    assert not transitive_similarity(image_similarity, torch.rand(4, requires_grad=True), 0.4, "product").requires_grad
    assert transitive_similarity(image_similarity.bfloat16(), torch.rand(4).bfloat16(), 0.4, "rescaled").dtype == torch.float32
    assert image_similarity.diagonal().ne(0).all(), "the argument was changed"


@pytest.mark.parametrize("variant", ["product", "rescaled"])
def test_alpha_of_degenerate_batches(variant):
    assert transitive_similarity(torch.ones(1, 1), torch.ones(1), 0.4, variant).tolist() == [[0]]
    assert transitive_similarity(torch.ones(0, 0), torch.ones(0), 0.4, variant).shape == (0, 0)
    equal = transitive_similarity(torch.ones(3, 3), torch.ones(3), 0.4, variant)
    assert equal.tolist() == (1 - torch.eye(3)).tolist()
    for value in (0.0, -1.0):
        assert transitive_similarity(torch.full((3, 3), value), torch.ones(3), 0.4, variant).eq(0).all()
    assert transitive_similarity(torch.zeros(3, 3), torch.zeros(3), 0.4, variant).eq(0).all()
    assert transitive_similarity(torch.full((3, 3), 1.001), torch.full((3,), 1.001), 0.4, "product").max() == 1
    assert transitive_similarity(torch.ones(3, 3), torch.tensor([1.0, float("nan"), 1.0]), 0.4, variant).isnan().any()


def test_rounding_differences_between_equal_pairs_are_not_stretched():
    image_caption = torch.tensor([0.5, 0.5 + 1e-7, 0.5 - 1e-7])
    assert transitive_similarity(torch.ones(3, 3), image_caption, 0.4, "rescaled").tolist() == (1 - torch.eye(3)).tolist()


def test_alpha_refuses_what_has_no_meaning():
    with pytest.raises(ValueError, match="below 1"):
        transitive_similarity(torch.ones(2, 2), torch.ones(2), 1.0, "product")
    with pytest.raises(ValueError, match="'product' and 'rescaled'"):
        transitive_similarity(torch.ones(2, 2), torch.ones(2), 0.4, "sum")  # type: ignore[arg-type]


@quick
@given(seeds, sizes, st.sampled_from([0.05, 0.1, 1.0]), variants, margins, BLOCKS)
def test_loss_equals_the_equation(seed, rows, temperature, variant, margin, pairs):
    captions, seen, ids = vectors(seed, rows), pictures(seed, rows), image_ids(seed, rows)
    beta = [[cosine(a, b) for b in captions] for a in captions]
    alpha = alpha_by_loops(*similarities(seed, rows), margin, variant)
    given_tensors = tensors(captions, *seen)
    loss = transitive_loss(*given_tensors, temperature, torch.from_numpy(ids), margin, variant, pairs)
    assert loss.item() == pytest.approx(loss_by_loops(beta, alpha, temperature, ids), rel=1e-9, abs=1e-12)


@quick
@given(seeds, sizes, variants, st.floats(1e-3, 1e3))
def test_order_of_rows_and_lengths_of_vectors_do_not_matter(seed, rows, variant, factor):
    captions, images, image_captions, ids = tensors(vectors(seed, rows), *pictures(seed, rows), image_ids(seed, rows))
    loss = transitive_loss(captions, images, image_captions, 0.1, ids, 0.4, variant)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(rows))
    moved = transitive_loss(captions[order], images[order], image_captions[order], 0.1, ids[order], 0.4, variant)
    torch.testing.assert_close(moved, loss)
    scaled = transitive_loss(captions * factor, images / factor, image_captions * factor, 0.1, ids, 0.4, variant)
    torch.testing.assert_close(scaled, loss)


@pytest.mark.parametrize("variant", ["product", "rescaled"])
@pytest.mark.parametrize("pairs", [1, 12, 1000])
def test_gradients(pairs, variant):
    captions, images, image_captions, ids = tensors(vectors(0, 5), *pictures(0, 5), image_ids(0, 5))
    temperature = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)

    def loss(captions, temperature):
        return transitive_loss(captions, images.requires_grad_(), image_captions.requires_grad_(), temperature, ids, 0.1, variant, pairs)

    assert torch.autograd.gradcheck(loss, (captions.requires_grad_(), temperature))
    loss(captions, temperature).backward()
    assert images.grad is None, "what the targets are made of is constant"
    assert image_captions.grad is None


@pytest.mark.parametrize("variant", ["product", "rescaled"])
def test_zero_alpha_gives_zero_loss_and_gradient(variant):
    for rows in (1, 4):
        loss, (gradient,) = loss_and_gradients(
            transitive_loss,
            torch.randn(rows, 5),
            images=torch.eye(rows),
            image_captions=torch.eye(rows),
            temperature=0.1,
            image_ids=torch.zeros(rows),
            margin=0.1,
            variant=variant,
        )
        assert loss == 0
        assert gradient.eq(0).all()


def test_captions_of_the_same_image_are_never_negatives():
    unlike = torch.eye(3)

    def pull(ids):
        """Change of the loss as caption 0 moves towards captions 1 and 2, which are alike."""
        captions = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
        _, (gradient,) = loss_and_gradients(
            transitive_loss, captions, images=unlike, image_captions=unlike, temperature=0.1, image_ids=torch.tensor(ids)
        )
        return gradient[0, 1].item(), gradient[0, 2].item()

    towards_1, towards_2 = pull([7, 7, 9])
    assert towards_1 < 0 < towards_2
    assert pull([0, 0, 9]) == (0, 0), "no image is like no other"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype):
    captions, images, image_captions = (torch.rand(6, 16).to(dtype) for _ in range(3))
    others = {"temperature": 0.01, "image_ids": torch.zeros(6), "variant": "rescaled"}
    for surroundings in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype=surroundings):
            loss, (gradient,) = loss_and_gradients(transitive_loss, captions, images=images, image_captions=image_captions, **others)
        exact, (right,) = loss_and_gradients(
            transitive_loss, captions.double(), images=images.double(), image_captions=image_captions.double(), **others
        )
        assert loss == pytest.approx(exact, rel=1e-4)
        torch.testing.assert_close(gradient, right.to(dtype))
    assert transitive_loss(captions, images, image_captions, 0.01, torch.zeros(6)).dtype == torch.float32


def sigmoid_by_loops(beta, alpha, temperature, bias, ids):
    rows, total, weight = len(beta), 0.0, 0.0
    for i in range(rows):
        targets = {j: 1.0 if same(ids, i, j) else alpha[i][j] for j in range(len(beta[i])) if j != i}
        for j, target in targets.items():
            logit = beta[i][j] / temperature + bias
            total += target * math.log1p(math.exp(-logit)) + (1 - target) * math.log1p(math.exp(logit))
        weight += max(1.0, sum(targets.values()))
    return total / weight


@quick
@given(seeds, sizes, st.sampled_from([0.1, 1.0]), st.sampled_from([-8.0, 0.5]), variants, margins, BLOCKS)
def test_the_sigmoid_loss_with_soft_targets_equals_the_equation(seed, rows, temperature, bias, variant, margin, pairs):
    captions, seen, ids = vectors(seed, rows), pictures(seed, rows), image_ids(seed, rows)
    beta = [[cosine(a, b) for b in captions] for a in captions]
    alpha = alpha_by_loops(*similarities(seed, rows), margin, variant)
    loss = transitive_loss(*tensors(captions, *seen), temperature, torch.from_numpy(ids), margin, variant, pairs, bias)
    assert loss.item() == pytest.approx(sigmoid_by_loops(beta, alpha, temperature, bias, ids), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("pairs", [1, 12, 1000])
def test_gradients_of_the_sigmoid_loss(pairs):
    captions, images, image_captions, ids = tensors(vectors(0, 5), *pictures(0, 5), image_ids(0, 5))
    temperature, bias = (torch.tensor([value], dtype=torch.float64, requires_grad=True) for value in (0.3, -2.0))

    def loss(captions, temperature, bias):
        return transitive_loss(captions, images, image_captions, temperature, ids, 0.1, "rescaled", pairs, bias)

    assert torch.autograd.gradcheck(loss, (captions.requires_grad_(), temperature, bias))


def table_with_neighbours(seed, rows, queued):
    """A batch and further samples, as one table would have them all, and the latter as neighbours."""
    captions, seen, ids = vectors(seed, rows + queued), pictures(seed, rows + queued), image_ids(seed, rows + queued)
    ids[rows:] = np.where(ids[rows:] == 0, 0, ids[rows:] + 100)  # other images than those of the batch
    image_caption = np.array([cosine(a, b) for a, b in zip(*seen, strict=True)])
    neighbours = Neighbours(*tensors(captions[rows:], seen[0][rows:] * 3, image_caption[rows:], ids[rows:]))
    return captions, seen, ids, neighbours


@quick
@given(seeds, sizes, st.integers(0, 9), variants, margins, BLOCKS, st.sampled_from([None, -3.0]))
def test_neighbours_are_further_columns_of_the_same_table(seed, rows, queued, variant, margin, pairs, bias):
    captions, seen, ids, neighbours = table_with_neighbours(seed, rows, queued)
    image_similarity, image_caption = similarities(seed, rows + queued)
    low, high = min(image_caption), max(image_caption)
    confidence = image_caption
    if variant == "rescaled":
        confidence = [0.75 + 0.5 * (x - low) / (high - low) if high > low else 1.0 for x in image_caption]
    pairs_of = [(i, j) for i in range(rows) for j in range(rows + queued) if i != j]
    chain = {(i, j): image_similarity[i][j] * confidence[i] * confidence[j] for i, j in pairs_of}
    greatest = max(chain.values(), default=0.0)
    scale = greatest if variant == "rescaled" and greatest > 0 else 1.0
    alpha = np.zeros((rows, rows + queued))
    for pair, value in chain.items():
        alpha[pair] = min(1.0, max(0.0, value / scale - margin) / (1 - margin))
    beta = [[cosine(captions[i], other) for other in captions] for i in range(rows)]
    if bias is None:
        total = weight = 0.0
        for i in range(rows):
            candidates = {k: beta[i][k] / 0.5 for k in range(rows + queued) if k != i}
            targets = {j: 1.0 if same(ids, i, j) else alpha[i][j] for j in candidates}
            total -= sum(target * log_softmax(candidates, j) for j, target in targets.items() if target)
            weight += sum(targets.values())
        expected = total / weight if weight else 0.0
    else:
        expected = sigmoid_by_loops(beta, alpha, 0.5, bias, ids)
    given_tensors = tensors(captions[:rows], *(one[:rows] for one in seen))
    loss = transitive_loss(*given_tensors, 0.5, torch.from_numpy(ids[:rows]), margin, variant, pairs, bias, neighbours=neighbours)
    assert loss.item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("hardness", [0.0, 1.5])
def test_gradients_with_neighbours_and_hard_negatives(hardness):
    """Against the same loss in plain autograd, the weights of hard negatives held constant."""
    captions, seen, ids, neighbours = table_with_neighbours(3, 5, 4)
    leaf, again = (torch.from_numpy(captions[:5]).clone().requires_grad_() for _ in range(2))
    temperature, warm = (torch.tensor([0.4], dtype=torch.float64, requires_grad=True) for _ in range(2))
    images, told = tensors(*(one[:5] for one in seen))
    ids_of_batch = torch.from_numpy(ids[:5])
    transitive_loss(leaf, images, told, temperature, ids_of_batch, 0.3, "product", 20, None, hardness, neighbours).backward()

    everything = torch.nn.functional.normalize(torch.cat([again, neighbours.captions]))
    pictured = torch.nn.functional.normalize(torch.from_numpy(seen[0]))
    believed = torch.from_numpy(np.array([cosine(a, b) for a, b in zip(*seen, strict=True)]))
    own = torch.eye(5, 9, dtype=torch.bool)
    alpha = ((pictured @ pictured.T * believed[:, None] * believed - 0.3) / 0.7).clamp(0, 1)[:5]
    alpha[torch.tensor([[same(ids, i, j) for j in range(9)] for i in range(5)])] = 1
    alpha[own] = 0
    logits = everything[:5] @ everything.T / warm
    negative = (alpha == 0) & ~own
    drawn = torch.where(negative, (hardness * logits.detach()).exp(), 0)
    weights = torch.where(negative, drawn * negative.sum(1, keepdim=True) / drawn.sum(1, keepdim=True), 1.0)
    below = torch.where(own, 0, weights * logits.exp()).sum(1, keepdim=True)
    (-(alpha * (logits - below.log())).sum() / alpha.sum()).backward()
    torch.testing.assert_close(leaf.grad, again.grad)
    torch.testing.assert_close(temperature.grad, warm.grad)


@pytest.mark.parametrize("bias", [None, 0.0])
def test_a_sample_that_is_met_again_counts_neither_as_match_nor_as_another(bias):
    """The queue holds two captions of the first picture: one of picture 7 itself, one of another that looks the same."""
    captions, images = torch.eye(4)[:2], torch.eye(4)[:2]
    queue = Neighbours(torch.eye(4)[2:], torch.eye(4)[[0, 0]], torch.ones(2), torch.tensor([7, 9]))

    def pull(ids):
        _, (gradient,) = loss_and_gradients(
            functools.partial(transitive_loss, images=images, image_captions=images, temperature=0.1, bias=bias, neighbours=queue),
            captions,
            image_ids=torch.tensor(ids),
        )
        return gradient[0, 2].item(), gradient[0, 3].item()

    towards_itself, towards_the_like = pull([7, 8])
    assert towards_itself == 0
    assert towards_the_like < 0
    assert max(pull([0, 0])) < 0, "where pictures are not known by number, both are like it"


def test_captions_of_prefixes_meet_prefixes():
    captions, images = torch.eye(4)[:2], torch.eye(4)[:2]
    queue = Neighbours(torch.eye(4)[2:], torch.eye(4)[2:], torch.ones(2), torch.tensor([5, 9]))
    whole = transitive_loss(captions[:, :3], images, images, 0.1, torch.tensor([7, 8]), neighbours=queue)
    cut = transitive_loss(
        captions[:, :3], images, images, 0.1, torch.tensor([7, 8]), neighbours=queue._replace(captions=queue.captions[:, :3])
    )
    assert whole == cut

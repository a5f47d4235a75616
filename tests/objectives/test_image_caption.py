import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raysys.objectives.image_caption import info_nce
from tests.objectives.cases import cosine, log_softmax, loss_and_gradients, quick, same_images, seeds, sizes, tensors, vectors


def loss_by_loops(images, captions, temperature, same_image):
    total = 0.0
    for queries, answers in ((images, captions), (captions, images)):
        for i, query in enumerate(queries):
            candidates = {k: cosine(query, answer) / temperature for k, answer in enumerate(answers)}
            positives = [k for k in candidates if k == i or same_image[i][k]]
            total -= sum(log_softmax(candidates, k) for k in positives) / len(positives)
    return total / (2 * len(images))


@quick
@given(seeds, sizes, st.sampled_from([0.05, 0.1, 1.0]))
def test_loss_equals_the_equation(seed, rows, temperature):
    images, captions, same = vectors(seed, rows), vectors(seed + 1, rows), same_images(seed, rows)
    loss = info_nce(*tensors(images, captions), temperature, torch.from_numpy(same))
    assert loss.item() == pytest.approx(loss_by_loops(images, captions, temperature, same), rel=1e-9, abs=1e-12)


@quick
@given(seeds, sizes, st.floats(1e-3, 1e3))
def test_order_of_rows_direction_and_lengths_of_vectors_do_not_matter(seed, rows, factor):
    images, captions, same = tensors(vectors(seed, rows), vectors(seed + 1, rows), same_images(seed, rows))
    loss = info_nce(images, captions, 0.1, same)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(rows))
    torch.testing.assert_close(info_nce(images[order], captions[order], 0.1, same[order][:, order]), loss)
    torch.testing.assert_close(info_nce(captions, images, 0.1, same), loss)
    torch.testing.assert_close(info_nce(images * factor, captions / factor, 0.1, same), loss)


def test_gradients():
    images, captions = tensors(vectors(0, 5), vectors(1, 5))
    same, temperature = torch.from_numpy(same_images(0, 5)), torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    inputs = (images.requires_grad_(), captions.requires_grad_(), temperature)
    assert torch.autograd.gradcheck(lambda a, b, t: info_nce(a, b, t, same), inputs)


def test_one_pair_has_nothing_to_be_told_from():
    loss, gradients = loss_and_gradients(
        info_nce, torch.randn(1, 4), torch.randn(1, 4), temperature=0.1, same_image=torch.zeros(1, 1).bool()
    )
    assert loss == 0
    assert all(gradient.eq(0).all() for gradient in gradients)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_and_zero_vectors(value):
    rows = torch.full((4, 3), value)
    loss, gradients = loss_and_gradients(info_nce, rows, rows, temperature=0.01, same_image=torch.zeros(4, 4).bool())
    assert loss == pytest.approx(np.log(4), rel=1e-6)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert value or all(gradient.eq(0).all() for gradient in gradients)


def test_captions_of_the_same_image_are_never_negatives():
    same = torch.tensor([[1, 1, 0], [1, 1, 0], [0, 0, 1]]).bool()

    def pull(pairs):
        """Change of the loss as caption 1 moves towards image 0."""
        vectors = torch.eye(3, dtype=torch.float64)
        _, (_, gradient) = loss_and_gradients(info_nce, vectors, vectors.clone(), temperature=0.5, same_image=pairs)
        return gradient[1, 0].item()

    assert pull(same) < 0 < pull(torch.eye(3).bool())


def test_half_precision_is_computed_in_float32():
    images, captions = torch.randn(6, 16).bfloat16(), torch.randn(6, 16).bfloat16()
    nothing = torch.zeros(6, 6, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = info_nce(images, captions, 0.01, nothing)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(info_nce(images.double(), captions.double(), 0.01, nothing).item(), rel=1e-5)

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raysys.objectives.transitive import transitive_loss, transitive_similarity
from tests.objectives.cases import cosine, log_softmax, loss_and_gradients, quick, same_images, seeds, sizes, tensors, vectors

variants = st.sampled_from(["product", "rescaled"])
margins = st.sampled_from([0.0, 0.2, 0.4, 0.9])


def similarities(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """α^v of all pairs and α^x of the diagonal, mostly positive, as cosines of related vectors are."""
    images, captions = vectors(seed, rows, 3) + 1, vectors(seed + 1, rows, 3) * 0.5 + 1
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


def loss_by_loops(beta, alpha, temperature, same_image):
    rows, total, weight = len(beta), 0.0, 0.0
    for i in range(rows):
        candidates = {k: beta[i][k] / temperature for k in range(rows) if k != i}
        for j in candidates:
            target = 1.0 if same_image[i][j] else alpha[i][j]
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
@given(seeds, sizes, st.sampled_from([0.05, 0.1, 1.0]))
def test_loss_equals_the_equation(seed, rows, temperature):
    beta = np.array([[cosine(a, b) for b in vectors(seed, rows)] for a in vectors(seed, rows)])
    alpha = alpha_by_loops(*similarities(seed, rows), 0.4, "product")
    same = same_images(seed, rows)
    loss = transitive_loss(torch.from_numpy(beta), torch.from_numpy(alpha), temperature, torch.from_numpy(same))
    assert loss.item() == pytest.approx(loss_by_loops(beta, alpha, temperature, same), rel=1e-9, abs=1e-12)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(rows))
    moved = [tensor[order][:, order] for tensor in tensors(beta, alpha, same)]
    torch.testing.assert_close(transitive_loss(moved[0], moved[1], temperature, moved[2]), loss)


@quick
@given(seeds, st.integers(2, 9), st.floats(0.1, 1))
def test_loss_does_not_depend_on_the_scale_of_alpha(seed, rows, factor):
    beta, alpha = tensors(vectors(seed, rows, rows), np.random.default_rng(seed).random((rows, rows)))
    nothing = torch.zeros(rows, rows, dtype=torch.bool)
    torch.testing.assert_close(transitive_loss(beta, alpha * factor, 0.1, nothing), transitive_loss(beta, alpha, 0.1, nothing))


def test_gradients():
    beta, alpha = tensors(vectors(0, 5, 5), np.random.default_rng(0).random((5, 5)))
    same, temperature = torch.from_numpy(same_images(0, 5)), torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda b, t: transitive_loss(b, alpha, t, same), (beta.requires_grad_(), temperature))
    targets = alpha.clone().requires_grad_()
    transitive_loss(beta, targets, 0.1, same).backward()
    assert targets.grad is None, "the targets are constants"


def test_zero_alpha_gives_zero_loss_and_gradient():
    for rows in (1, 4):
        loss, (gradient,) = loss_and_gradients(
            transitive_loss, torch.randn(rows, rows), alpha=torch.zeros(rows, rows), temperature=0.1, same_image=torch.eye(rows).bool()
        )
        assert loss == 0
        assert gradient.eq(0).all()


def test_the_diagonal_plays_no_part():
    beta, alpha, nothing = torch.randn(4, 4), torch.rand(4, 4), torch.zeros(4, 4, dtype=torch.bool)
    loss, (gradient,) = loss_and_gradients(transitive_loss, beta, alpha=alpha, temperature=0.1, same_image=nothing)
    assert gradient.diagonal().eq(0).all()
    changed = transitive_loss(beta + 50 * torch.eye(4), alpha + torch.eye(4), 0.1, nothing)
    assert changed.item() == loss


def test_captions_of_the_same_image_are_never_negatives():
    same = torch.tensor([[1, 1, 0], [1, 1, 0], [0, 0, 1]]).bool()
    _, (gradient,) = loss_and_gradients(transitive_loss, torch.zeros(3, 3), alpha=torch.zeros(3, 3), temperature=0.1, same_image=same)
    assert gradient[0, 1] < 0
    assert gradient[1, 0] < 0
    assert gradient[0, 2] > 0
    assert gradient[2].eq(0).all(), "nothing is known about the third caption"


def test_half_precision_is_computed_in_float32():
    beta, alpha = torch.rand(6, 6).bfloat16(), torch.rand(6, 6).bfloat16()
    nothing = torch.zeros(6, 6, dtype=torch.bool)
    loss = transitive_loss(beta, alpha, 0.01, nothing)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(transitive_loss(beta.double(), alpha.double(), 0.01, nothing).item(), rel=1e-5)

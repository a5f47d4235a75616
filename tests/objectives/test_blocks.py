import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raysys.models.queue import Neighbours
from raysys.objectives.blocks import mean_over_blocks, row_blocks
from raysys.objectives.image_caption import info_nce, pairwise_sigmoid
from raysys.objectives.image_contrastive import nt_xent
from raysys.objectives.perceptual import perceptual_loss
from raysys.objectives.ranking import ranking_loss
from raysys.objectives.similarity import unit_vectors
from raysys.objectives.transitive import transitive_loss
from tests.objectives.cases import quick


@quick
@given(st.integers(0, 40), st.integers(1, 40), st.integers(1, 300))
def test_blocks_cover_every_row_once_and_stay_small(rows, columns, pairs):
    blocks = row_blocks(rows, columns, pairs)
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(rows))
    assert all((block.stop - block.start) * columns <= pairs or block.stop - block.start == 1 for block in blocks)
    assert rows * columns > pairs or len(blocks) <= 1


def squares(rows, vectors, factor):
    return (vectors[rows].square() * factor).sum(), torch.tensor(float(rows.stop - rows.start))


def test_the_mean_and_its_gradients_and_nothing_for_those_who_want_none():
    vectors, factor = torch.tensor([[1.0], [2.0], [3.0]], requires_grad=True), torch.tensor([2.0], requires_grad=True)
    mean = mean_over_blocks(squares, row_blocks(3, 1, 2), vectors, factor)
    assert mean.item() == pytest.approx(2 * 14 / 3)
    (3 * mean).backward()
    assert vectors.grad.flatten().tolist() == [4, 8, 12]
    assert factor.grad.tolist() == [14]
    constant = mean_over_blocks(squares, row_blocks(3, 1, 2), vectors.detach(), factor)
    assert torch.autograd.grad(constant, factor)[0].item() == pytest.approx(14 / 3)
    with torch.no_grad():
        assert not mean_over_blocks(squares, row_blocks(3, 1, 2), vectors, 2.0).requires_grad


def test_without_rows_the_graph_stays_whole():
    vectors = torch.zeros(0, 4, requires_grad=True)
    loss = mean_over_blocks(squares, row_blocks(0, 0), vectors, 1.0)
    assert loss.item() == 0
    loss.backward()
    assert vectors.grad.shape == (0, 4)


def queued(captions, images, image_captions, ids):
    seen, told = unit_vectors(images.detach()), unit_vectors(image_captions.detach())
    return Neighbours(captions.detach(), seen, (seen * told).sum(dim=-1), ids)


LOSSES = {
    "transitive-product": lambda a, b, c, t, ids, pairs: transitive_loss(a, b, c, t, ids, 0.1, "product", pairs),
    "transitive-rescaled": lambda a, b, c, t, ids, pairs: transitive_loss(a, b, c, t, ids, 0.1, "rescaled", pairs),
    "image": lambda a, b, c, t, ids, pairs: nt_xent(b, c, t, ids, pairs),
    "image_caption": lambda a, b, c, t, ids, pairs: info_nce(b, c, t, ids, pairs),
    "image_caption-hard": lambda a, b, c, t, ids, pairs: info_nce(b, c, t, ids, pairs, 0.3),
    "image_caption-sigmoid": lambda a, b, c, t, ids, pairs: pairwise_sigmoid(b, c, t, -4.0, ids, pairs, 0.3),
    "transitive-sigmoid": lambda a, b, c, t, ids, pairs: transitive_loss(a, b, c, t, ids, 0.1, "rescaled", pairs, -4.0, 0.3),
    "perceptual": lambda a, b, c, t, ids, pairs: perceptual_loss(b, c, ids != 0, block_pairs=pairs)[0],
    "perceptual-sampled": lambda a, b, c, t, ids, pairs: perceptual_loss(b, c, ids != 0, 900, torch.linspace(0, 1, len(b)), 128 * pairs)[0],
    "ranking": lambda a, b, c, t, ids, pairs: ranking_loss(b, c, ids, 0.5, pairs),
    "transitive-neighbours": lambda a, b, c, t, ids, pairs: transitive_loss(
        a[:60], b[:60], c[:60], t, ids[:60], 0.1, "rescaled", pairs, neighbours=queued(a[60:], b[60:], c[60:], ids[60:])
    ),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_values_and_gradients_in_float32_do_not_depend_on_the_blocks(loss):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 60, (90,), generator=generator)
    about = torch.randn(90, 16, generator=generator)
    start = [about + torch.randn(90, 16, generator=generator) for _ in range(3)] + [torch.tensor([0.1])]
    found = []
    for pairs in (2**24, 3000, 1):
        leaves = [value.clone().requires_grad_() for value in start]
        value = LOSSES[loss](*leaves, ids, pairs)
        value.backward()
        found.append([value.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)])
    for other in found[1:]:
        for one, again in zip(found[0], other, strict=True):
            assert (one - again).norm() <= 1e-5 * one.norm()


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_kept_for_backward_grows_with_the_rows_alone(loss):
    ids, kept = torch.arange(1, 301), []

    def note(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        vectors = [torch.randn(300, 8, requires_grad=True) for _ in range(3)]
        LOSSES[loss](*vectors, 0.1, ids, 1000).backward()
    assert max(kept) <= 2 * 300 * 8, "blocks and vectors, never all pairs"

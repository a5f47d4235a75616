import pytest
import torch

from raysys.objectives.image_caption import info_nce, pairwise_sigmoid
from raysys.objectives.prefixes import mean_over_prefixes
from raysys.objectives.transitive import transitive_loss

IDS = torch.tensor([1, 2, 3, 3, 5, 0, 0, 8])
LOSSES = {
    "info_nce": lambda a, b: info_nce(a, b, 0.2, IDS),
    "sigmoid": lambda a, b: pairwise_sigmoid(a, b, 0.2, -2.0, IDS),
    "transitive": lambda a, b: transitive_loss(a, b, b, 0.2, IDS, 0.1),
}


def rows(seed: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(8, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_mean_of_the_losses_of_prefixes_each_normalised_anew(loss):
    a, b = rows(1), rows(2)
    cut = [torch.nn.functional.normalize(one[:, :size]) for size in (2, 5) for one in (a, b)]
    expected = (loss(cut[0], cut[1]) + loss(cut[2], cut[3]) + loss(a, b)) / 3
    torch.testing.assert_close(mean_over_prefixes(loss, (2, 5), a, b), expected, rtol=1e-12, atol=0)
    assert torch.equal(mean_over_prefixes(loss, (), a, b), loss(a, b))
    assert torch.equal(mean_over_prefixes(lambda one: loss(one, b), (), a), loss(a, b))


def test_gradients():
    a, b = rows(1).requires_grad_(), rows(2).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: mean_over_prefixes(LOSSES["info_nce"], (1, 4), a, b), (a, b))


@pytest.mark.parametrize("size", [0, -1, 6, 7])
def test_a_prefix_is_shorter_than_the_whole(size):
    with pytest.raises(ValueError, match=rf"prefix of {size} entries cannot be taken of vectors of \[6\]"):
        mean_over_prefixes(lambda a: a.sum(), (2, size), rows(1))


def found_by_prefix(sizes: tuple[int, ...]) -> float:
    """Share of 64 captions whose image is nearest by the first 4 of 32 entries, after training two linear maps."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(64, 64, generator=generator)
    captions = torch.randn(64, 64, generator=generator)
    maps = [torch.nn.Parameter(torch.randn(64, 32, generator=generator) / 8) for _ in range(2)]
    optimizer = torch.optim.Adam(maps, lr=0.01)
    ids = torch.arange(1, 65)
    for _ in range(60):
        loss = mean_over_prefixes(lambda a, b: info_nce(a, b, 0.1, ids), sizes, images @ maps[0], captions @ maps[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    one, two = (torch.nn.functional.normalize((x @ y)[:, :4].detach()) for x, y in zip((images, captions), maps, strict=True))
    return float(((two @ one.T).argmax(dim=1) == torch.arange(64)).float().mean())


def test_vectors_cut_after_training_stay_useful():
    assert found_by_prefix((4, 16)) > found_by_prefix(()) + 0.2

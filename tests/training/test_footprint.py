import pytest
import torch
from torch import Tensor, nn

from raysys.training import footprint
from raysys.training.footprint import count_weights, measure_losses, measure_micro_batch, measure_update

FLOAT = 4


class Pairs(nn.Module):
    """A layer, and a loss over all pairs of its vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(100, 50)
        self.fixed = nn.Linear(3, 4).requires_grad_(False)
        self.norm = nn.BatchNorm1d(50)
        self.sizes: list[int] = []

    def forward(self, batch: Tensor) -> dict[str, Tensor]:
        self.sizes.append(len(batch))
        return {"vector": self.norm(self.layer(batch)), "count": torch.ones(len(batch)), "number": torch.arange(len(batch))}

    def losses(self, vectors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"pairs": (vectors["vector"] @ vectors["vector"].T).exp().mean()}

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        return terms["pairs"]


def test_sizes_of_a_system():
    system = Pairs()
    system.kept = nn.Linear(20, 100).requires_grad_(False)
    weights = count_weights(system, torch.randn(2, 100), persistence_threshold=1000)
    assert (weights.trained, weights.frozen) == (5000 + 50 + 100, 16 + 2100)
    assert weights.persistent == 50 + 100 + 16 + 100
    assert weights.idle == 2000, "no forward pass comes there"
    assert weights.buffers == 2 * 50 * FLOAT + 8
    assert weights.statistics == 101


def test_a_micro_batch_keeps_what_backward_needs(monkeypatch):
    monkeypatch.setattr(footprint, "_ENOUGH", 1e9)
    system = Pairs()
    use = measure_micro_batch(system, lambda samples: torch.randn(samples, 100), 64)
    rows = 64 * 50 * FLOAT
    assert 3 * rows <= use.bytes <= 6 * rows + 5000 * FLOAT, "two outputs, and gradients while backward runs"
    assert use.size == 64
    assert use.forward > 0
    assert use.forward_backward > 0
    assert all(parameter.grad is None for parameter in system.parameters())
    assert set(system.sizes) == {2, 8, 32, 64}


class Curves(Pairs):
    """Hardly any weights: all that it takes grows with the micro-batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def forward(self, batch: Tensor) -> dict[str, Tensor]:
        self.sizes.append(len(batch))
        return {"vector": self.layer(batch.exp().unsqueeze(-1)).squeeze(-1).exp().exp()}


def test_a_large_micro_batch_follows_from_smaller_ones(monkeypatch):
    monkeypatch.setattr(footprint, "_ENOUGH", 1e9)
    whole = measure_micro_batch(Curves(), lambda samples: torch.randn(samples, 100), 4096)
    monkeypatch.setattr(footprint, "_ENOUGH", 0.0)
    system = Curves()
    found = measure_micro_batch(system, lambda samples: torch.randn(samples, 100), 4096)
    assert set(system.sizes) == {2, 3}
    assert found.bytes == pytest.approx(whole.bytes, rel=0.02)
    assert found.bytes > 4096 * 100 * FLOAT


def test_losses_grow_with_the_pairs(monkeypatch):
    system = Pairs().eval()
    rows = system(torch.zeros(2, 100))
    use, reached = measure_losses(system, rows, 512)
    assert reached == 50 * FLOAT, "counts and numbers receive no gradient"
    pairs = 512 * 512 * FLOAT
    assert 2 * pairs <= use.bytes <= 5 * pairs
    monkeypatch.setattr(footprint, "_LARGEST_LOSS", 256)
    assert measure_losses(system, rows, 512)[0].bytes == pytest.approx(use.bytes, rel=0.05)


def test_an_update_takes_time():
    assert 0 < measure_update(1000, torch.device("cpu")) < 1

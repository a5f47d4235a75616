"""The objectives of the grounded systems are those of the global batch, however many workers hold it."""

import pytest
import torch

from raysys.objectives.cluster import cluster_loss
from raysys.objectives.perceptual import perceptual_loss
from raysys.objectives.ranking import cross_modal_loss, ranking_loss
from raysys.training.gather import gather_all
from tests.training.processes import run_ranks

LOSSES = {
    "cluster": lambda rows: cluster_loss(rows["grounded"], rows["others"], rows["ids"], rows["usable"], rows["draws"]),
    "perceptual": lambda rows: perceptual_loss(rows["grounded"], rows["images"], rows["usable"])[0],
    "perceptual in blocks": lambda rows: perceptual_loss(rows["grounded"], rows["images"], rows["usable"], block_pairs=30)[0],
    "perceptual of a sample": lambda rows: perceptual_loss(rows["grounded"], rows["images"], rows["usable"], 40, rows["draws"])[0],
    "cross_modal": lambda rows: cross_modal_loss(rows["grounded"], rows["images"], rows["ids"], rows["draws"]),
    "ranking": lambda rows: ranking_loss(rows["grounded"], rows["images"], rows["ids"]),
}
COUNTS = {1: [18], 4: [7, 0, 9, 2]}  # the last worker has rows without pictures alone


def batch() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(0, 7, (18,), generator=generator)
    ids[-2:] = 0
    vectors = {name: torch.randn(18, 6, generator=generator, dtype=torch.float64) for name in ("grounded", "others", "images")}
    return vectors | {"ids": ids, "usable": ids != 0, "draws": torch.rand(18, generator=generator)}


def on_ranks(rank: int, ranks: int) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Of each loss its value, and the gradient of this worker's sentences."""
    counts, found = COUNTS[ranks], {}
    start = sum(counts[:rank])
    own = slice(start, start + counts[rank])
    for name, loss in LOSSES.items():
        rows = {key: value[own] for key, value in batch().items()}
        leaf = rows["grounded"] = rows["grounded"].clone().requires_grad_()
        value = loss(gather_all(rows, counts))
        value.backward()
        found[name] = value.detach(), leaf.grad / ranks  # as an engine averages it
    return found


@pytest.fixture(scope="module")
def found() -> dict[int, list]:
    return {1: [on_ranks(0, 1)], 4: run_ranks(on_ranks, 4, 4)}


@pytest.mark.parametrize("name", LOSSES)
def test_value_and_gradient_are_those_of_one_worker(found, name):
    ((value, gradient),) = (of_rank[name] for of_rank in found[1])
    assert value != 0
    assert gradient.any()
    for other, _ in (of_rank[name] for of_rank in found[4]):
        assert other == value, "the same on all workers, to the last bit"
    torch.testing.assert_close(torch.cat([of_rank[name][1] for of_rank in found[4]]), gradient)

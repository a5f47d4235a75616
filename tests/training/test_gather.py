"""The global batch across real processes: every objective's loss and gradient is that of one process."""

import itertools
import traceback
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch import nn

from raysys.objectives.cloze import cloze_loss
from raysys.objectives.image_caption import info_nce
from raysys.objectives.image_contrastive import nt_xent
from raysys.objectives.transitive import transitive_loss
from raysys.training.gather import gather_rows

ROWS, RANKS = 10, 4
OBJECTIVES = ("transitive-product", "transitive-rescaled", "image-contrastive", "image-caption", "cloze", "all")
SPLITS = {
    1: [[10]],
    2: [[5, 5], [9, 1], [0, 10]],
    3: [[4, 3, 3], [0, 10, 0], [1, 2, 7]],
    4: [[3, 3, 2, 2], [1, 0, 9, 0], [4, 1, 2, 3]],
}
PRECISIONS = {"float32": (torch.float32, 1e-5), "float64": (torch.float64, 1e-11)}


class Towers(nn.Module):
    """Two small encoders, a token classifier's stand-in and a learned temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8))
        self.text = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.LayerNorm(8))
        self.token = nn.Linear(8, 1)
        self.temperature = nn.Parameter(torch.tensor([0.3]))

    def forward(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        captions = self.text(batch["words"])
        return {
            "view_1": self.image(batch["view_1"]),
            "view_2": self.image(batch["view_2"]),
            "captions": captions,
            "loss_sums": self.token(captions).squeeze(1).square() * batch["counts"],
            "counts": batch["counts"],
            "image_ids": batch["image_ids"],
        }


def make(dtype: torch.dtype) -> tuple[Towers, dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    batch = {name: torch.randn(ROWS, width, generator=generator) for name, width in (("view_1", 6), ("view_2", 6), ("words", 5))}
    batch = {name: tensor.to(dtype) for name, tensor in batch.items()}
    batch["counts"] = torch.arange(ROWS) % 4
    batch["image_ids"] = torch.tensor([2**62 + 1, 2, 3, 4, 2**62 + 1, 6, 2, 8, 9, 2])
    torch.manual_seed(2)
    return Towers().to(dtype), batch


def loss_of(objective: str, rows: dict[str, torch.Tensor], temperature: torch.Tensor) -> torch.Tensor:
    ids = rows["image_ids"]
    if objective == "all":
        return sum((loss_of(name, rows, temperature) for name in OBJECTIVES[1:-1]), torch.zeros(()))
    if objective == "image-contrastive":
        return nt_xent(rows["view_1"], rows["view_2"], temperature, ids)
    if objective == "image-caption":
        return info_nce(rows["view_1"], rows["captions"], temperature, ids)
    if objective == "cloze":
        return cloze_loss(rows["loss_sums"], rows["counts"])
    variant = objective.removeprefix("transitive-")
    return transitive_loss(rows["captions"], rows["view_1"], rows["captions"], temperature, ids, 0.1, variant)  # type: ignore[arg-type]


def gradients_of(model: nn.Module) -> torch.Tensor:
    return torch.cat([torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in model.parameters()])


def one_process(objective: str, dtype: torch.dtype) -> tuple[float, torch.Tensor]:
    model, batch = make(dtype)
    loss = loss_of(objective, model(batch), model.temperature)
    loss.backward()
    return loss.item(), gradients_of(model)


def many_processes(objective: str, dtype: torch.dtype, counts: list[int], group: dist.ProcessGroup) -> tuple[float, torch.Tensor]:
    rank = dist.get_rank(group)
    model, batch = make(dtype)
    start = sum(counts[:rank])
    own = {name: tensor[start : start + counts[rank]] for name, tensor in batch.items()}
    if counts[rank] == 0:
        own = {name: tensor[:2] for name, tensor in batch.items()}  # padding: a rank without samples still runs the network
    rows = {name: gather_rows(tensor, counts, group) for name, tensor in model(own).items()}
    loss = loss_of(objective, rows, model.temperature)
    loss.backward()
    gradients = gradients_of(model)
    dist.all_reduce(gradients, group=group)
    return loss.item(), gradients / len(counts)


def values_of(dtype: torch.dtype, rank: int, rows: int) -> torch.Tensor:
    values = 10 * rank + torch.arange(rows * 6).reshape(rows, 2, 3)
    return values % 3 == 0 if dtype == torch.bool else values.to(dtype)


DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.bool)


def work(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS)
    results: dict[tuple, object] = {}
    for ranks, splits in SPLITS.items():
        group = dist.new_group(list(range(ranks)))
        if rank >= ranks:
            continue
        for counts, objective, precision in itertools.product(splits, OBJECTIVES, PRECISIONS):
            results[tuple(counts), objective, precision] = many_processes(objective, PRECISIONS[precision][0], counts, group)
    for dtype in DTYPES:
        local = values_of(dtype, rank, 4).requires_grad_(dtype.is_floating_point)
        gathered = gather_rows(local[:, :, :], [2, 0, 4, 1])
        results["values", dtype] = gathered.detach()
        if dtype.is_floating_point:
            gathered.sum().backward()
            results["gradient", dtype] = local.grad
    results["vector"] = gather_rows(torch.tensor([rank]), [1, 1, 1, 1])
    results["nothing"] = gather_rows(torch.ones(1, 3, requires_grad=True), [0, 0, 0, 0])
    # A transposed input and, through expand, a gradient that is not contiguous.
    local = torch.full((3, 2), float(rank), requires_grad=True)
    (gather_rows(local.T, [2, 2, 2, 2]) * torch.ones(1).expand(8, 3)).sum().backward()
    results["transposed"] = local.grad
    for name, arguments in {"ranks": (torch.ones(1), [1]), "rows": (torch.ones(1), [2, 2, 2, 2])}.items():
        try:
            gather_rows(*arguments)
        except ValueError:
            results["error", name] = traceback.format_exc(limit=0)
    torch.save(results, f"{folder}/results-{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> list[dict]:
    """What each of four processes found, all cases in one group of processes."""
    folder: Path = tmp_path_factory.mktemp("gather")
    multiprocessing.spawn(work, (str(folder),), nprocs=RANKS)
    return [torch.load(folder / f"results-{rank}.pt", weights_only=False) for rank in range(RANKS)]


CASES = [
    (counts, objective, precision)
    for splits in SPLITS.values()
    for counts in splits
    for objective in OBJECTIVES
    for precision in PRECISIONS
]


@pytest.mark.parametrize(("counts", "objective", "precision"), CASES)
def test_loss_and_gradients_are_those_of_one_process(results, counts, objective, precision):
    dtype, tolerance = PRECISIONS[precision]
    loss, gradients = one_process(objective, dtype)
    assert gradients.norm() > 1e-3
    for rank in range(len(counts)):
        found_loss, found_gradients = results[rank][tuple(counts), objective, precision]
        assert found_loss == pytest.approx(loss, rel=tolerance)
        assert (found_gradients - gradients).norm() <= tolerance * gradients.norm()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_arrive_in_rank_order_without_padding(results, dtype):
    expected = torch.cat([values_of(dtype, rank, rows) for rank, rows in enumerate([2, 0, 4, 1])])
    for rank, rows in enumerate([2, 0, 4, 1]):
        assert results[rank]["values", dtype].dtype == dtype
        assert results[rank]["values", dtype].equal(expected)
        if dtype.is_floating_point:
            gradient = results[rank]["gradient", dtype]
            assert gradient[:rows].eq(RANKS).all(), "the sum of what every rank hands back"
            assert gradient[rows:].eq(0).all(), "padding has no gradient"


def test_shapes_and_layouts(results):
    for rank in range(RANKS):
        assert results[rank]["vector"].tolist() == [0, 1, 2, 3]
        assert results[rank]["nothing"].shape == (0, 3)
        assert results[rank]["transposed"].eq(RANKS).all()


def test_wrong_counts_are_refused_before_any_communication(results):
    for rank in range(RANKS):
        assert "gathering from 4 ranks needs 4 row counts, got 1" in results[rank]["error", "ranks"]
        assert f"rank {rank} was to contribute 2 rows and has 1" in results[rank]["error", "rows"]


def test_without_process_group_the_rows_are_the_batch():
    local = torch.arange(6.0).reshape(3, 2).requires_grad_()
    gathered = gather_rows(local, [2])
    assert gathered.tolist() == [[0, 1], [2, 3]]
    gathered.sum().backward()
    assert local.grad.tolist() == [[1, 1], [1, 1], [0, 0]]
    with pytest.raises(ValueError, match="needs 1 row counts, got 2"):
        gather_rows(local, [2, 1])

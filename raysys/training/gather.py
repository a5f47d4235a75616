"""Make the global batch: all workers' rows on every worker, with gradients that find their way back."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable


def gather_rows(local: Tensor, counts: Sequence[int], group: dist.ProcessGroup | None = None) -> Tensor:
    """All workers' rows, in rank order: local [n, …] → [Σ counts, …], the same on every rank.

    Rank r contributes its first ``counts[r]`` rows. Rows beyond are padding: they are dropped and receive zero gradient (a rank without
    samples passes padding alone; it must be finite, for zero times infinity is not zero).

    Backward sums over the ranks what each hands back for this rank's rows. Where every rank computes the same loss of the global batch
    and the parameters' gradients are then *averaged* over the ranks (DeepSpeed, DDP), the result is the gradient of a one-process run
    on the global batch. Nothing is to be multiplied by the number of ranks.

    Every rank has to make the same calls in the same order, alike in dtype and in whether a gradient is required. Integers and booleans
    are gathered without gradient. Without an initialised process group, or with one rank, no communication takes place.

    Args:
        local: this rank's rows, [n, …], n ≥ counts[rank]; the trailing shape and dtype are the same on all ranks.
        counts: rows of each rank, the same list on all ranks; 0 is allowed.
        group: the ranks that take part; all by default.

    Raises:
        ValueError: `counts` does not have one entry per rank, or `local` has fewer rows than this rank's entry.
    """
    initialised = dist.is_available() and dist.is_initialized()
    ranks = dist.get_world_size(group) if initialised else 1
    rank = dist.get_rank(group) if initialised else 0
    if len(counts) != ranks:
        raise ValueError(f"gathering from {ranks} ranks needs {ranks} row counts, got {len(counts)}")
    if len(local) < counts[rank]:
        raise ValueError(f"rank {rank} was to contribute {counts[rank]} rows and has {len(local)}")
    if ranks == 1:
        return local[: counts[0]]
    if not local.is_floating_point():
        return _gather(local, counts, rank, group)
    return _GatherRows.apply(local, tuple(counts), rank, group)


def _gather(local: Tensor, counts: Sequence[int], rank: int, group: dist.ProcessGroup | None) -> Tensor:
    rows = max(counts)
    sent = local.new_zeros((rows, *local.shape[1:]))
    sent[: counts[rank]] = local[: counts[rank]]
    received = sent.new_empty((len(counts) * rows, *local.shape[1:]))
    if received.numel():
        wire = torch.uint8 if local.dtype == torch.bool else local.dtype  # not every backend knows booleans
        dist.all_gather_single(received.view(wire), sent.view(wire), group=group)
    return torch.cat([received[index * rows : index * rows + count] for index, count in enumerate(counts)])


def gather_all(vectors: dict[str, Tensor], counts: list[int]) -> dict[str, Tensor]:
    """Every tensor's rows from all workers, in the order of the global batch; differentiable."""
    return {name: gather_rows(rows, counts) for name, rows in vectors.items()}


def gather_objects(value: Any, workers: int) -> list[Any]:
    """What every worker holds, in rank order; small picklable things. To be called by all workers together."""
    if workers == 1:
        return [value]
    gathered: list[Any] = [None] * workers
    dist.all_gather_object(gathered, value)
    return gathered


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, counts: tuple[int, ...], rank: int, group: dist.ProcessGroup | None) -> Tensor:
        ctx.rows, ctx.counts, ctx.rank, ctx.group = len(local), counts, rank, group
        return _gather(local, counts, rank, group)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        total = gradient.clone(memory_format=torch.contiguous_format)
        if total.numel():
            dist.all_reduce(total, group=ctx.group)
        start = sum(ctx.counts[: ctx.rank])
        local = total.new_zeros((ctx.rows, *total.shape[1:]))
        local[: ctx.counts[ctx.rank]] = total[start : start + ctx.counts[ctx.rank]]
        return local, None, None, None

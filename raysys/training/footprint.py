"""What a system takes on this machine, measured: memory and time of one micro-batch, of the losses, and of the update."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from raysys.data.batches import Batch
from raysys.models.statistics import running_statistics
from raysys.objectives.blocks import BLOCK_PAIRS
from raysys.training.estimate import Weights, line_through, loss_growth
from raysys.training.live import LiveBytes

_ENOUGH = 1.0  # seconds; a micro-batch that would take longer is not tried
_LARGEST_LOSS = 1024  # rows
_UPDATED = 10_000_000  # parameters


@dataclass(frozen=True)
class MicroBatchUse:
    """Forward and backward of one micro-batch."""

    size: int
    """Samples."""
    bytes: float
    """Most that is alive beyond weights, gradients and the batch itself."""
    forward: float
    """Seconds without a graph."""
    forward_backward: float
    """Seconds."""


@dataclass(frozen=True)
class LossUse:
    """Losses of a global batch, forward and backward, on one worker."""

    bytes: float
    """Most that is alive beyond the vectors."""
    seconds: float


def count_weights(system: nn.Module, batch: Any, persistence_threshold: int) -> Weights:
    """Sizes of a system. A tensor of fewer than `persistence_threshold` elements is not divided by ZeRO 3.

    Args:
        system: in training mode.
        batch: of a few samples, to see which modules a forward pass uses.
        persistence_threshold: elements.
    """
    used: set[nn.Parameter] = set()

    def note(module: nn.Module, _: Any) -> None:
        used.update(module.parameters(recurse=False))

    handles = [module.register_forward_pre_hook(note) for module in system.modules()]
    with torch.no_grad():
        system(batch)
    for handle in handles:
        handle.remove()
    parameters = list(system.parameters())
    return Weights(
        trained=sum(one.numel() for one in parameters if one.requires_grad),
        frozen=sum(one.numel() for one in parameters if not one.requires_grad),
        persistent=sum(one.numel() for one in parameters if one.numel() < persistence_threshold),
        idle=sum(one.numel() for one in parameters if one.numel() >= persistence_threshold and one not in used),
        buffers=sum(one.nbytes for one in system.buffers()),
        statistics=sum(one.numel() for one in running_statistics(system)),
    )


def measure_micro_batch(system: Any, batch_of: Callable[[int], Any], size: int, half: torch.dtype | None = None) -> MicroBatchUse:
    """Memory and time of a micro-batch of `size` samples.

    Micro-batches of 2, 8, 32 … samples are run until `size` is reached or the next would take more than a second, 2 and 3 at
    least; larger ones follow from the straight line through the last two.

    Args:
        system: in training mode, on its device and in its precision.
        batch_of: number of samples → a batch on the device.
        size: samples.
        half: run forward under autocast to this type.
    """
    measured: list[MicroBatchUse] = []
    for samples in _growing(size):
        if measured and measured[-1].forward_backward * samples / measured[-1].size > _ENOUGH:
            if len(measured) > 1:
                break
            samples = min(samples, measured[-1].size + 1)  # a line needs two points
        measured.append(_measure(system, batch_of(samples), samples, half))
    last = measured[-1]
    if last.size == size:
        return last
    before = measured[-2]

    def at_size(small: float, large: float) -> float:
        return line_through(before.size, small, last.size, large, size)

    return MicroBatchUse(
        size,
        at_size(before.bytes, last.bytes),
        at_size(before.forward, last.forward),
        at_size(before.forward_backward, last.forward_backward),
    )


def _growing(last: int) -> Iterator[int]:
    size = 2  # batch normalisation has nothing to divide by with one
    while size < last:
        yield size
        size *= 4
    yield last


def _measure(system: Any, batch: Any, samples: int, half: torch.dtype | None) -> MicroBatchUse:
    device = next(system.parameters()).device.type

    def forward() -> dict[str, Tensor]:
        with torch.autocast(device, half, enabled=half is not None):
            return system(batch)

    def forward_and_backward() -> None:
        rows = [one for one in forward().values() if one.requires_grad]
        torch.autograd.backward(rows, [torch.ones_like(one) for one in rows])

    with _gradients_let_go(system):
        with LiveBytes() as live:
            seconds = _seconds(device, forward_and_backward)
        if seconds < _ENOUGH:  # once more: the first pass warms up, and counting takes time
            seconds = _seconds(device, forward_and_backward)
    with torch.no_grad():
        return MicroBatchUse(samples, live.peak, _seconds(device, forward), seconds)


@contextmanager
def _gradients_let_go(system: nn.Module) -> Iterator[None]:
    """Every gradient is dropped as soon as it is there: what an engine does with gradients is counted apart."""

    def drop(parameter: Tensor) -> None:
        parameter.grad = None

    trained = [one for one in system.parameters() if one.requires_grad]
    handles = [one.register_post_accumulate_grad_hook(drop) for one in trained]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _seconds(device: str, work: Callable[[], object]) -> float:
    _wait(device)
    start = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def measure_losses(system: Any, rows: dict[str, Tensor], size: int) -> tuple[LossUse, int]:
    """Memory and time of the losses of `size` samples, and the bytes of a sample's vectors that receive a gradient from them.

    More than 1 024 samples follow from two smaller numbers: seconds as a N + b N², bytes as a N + b min(N², pairs of a block), at most.

    Args:
        system: has `losses` and `total`.
        rows: what its `forward` gives for some samples; repeated to as many as are needed.
        size: N, samples of the global batch.
    """
    if size <= _LARGEST_LOSS:
        use, reached = _measure_losses(system, rows, size)
        return use, reached
    half, whole = _LARGEST_LOSS // 2, _LARGEST_LOSS
    small, _ = _measure_losses(system, rows, half)
    large, reached = _measure_losses(system, rows, whole)
    a, b = loss_growth(half, small.bytes, whole, large.bytes)
    c, d = loss_growth(half, small.seconds, whole, large.seconds)
    return LossUse(a * size + b * min(size**2, max(whole**2, BLOCK_PAIRS)), c * size + d * size**2), reached


def _measure_losses(system: Any, rows: dict[str, Tensor], size: int) -> tuple[LossUse, int]:
    vectors = {name: _repeated(value.detach(), size) for name, value in rows.items()}
    leaves = [value.requires_grad_() for value in vectors.values() if value.is_floating_point()]

    def work() -> None:
        system.total(system.losses(vectors)).backward()

    with LiveBytes() as live:
        work()
    reached = sum(leaf[:1].nbytes for leaf in leaves if leaf.grad is not None)
    for leaf in leaves:
        leaf.grad = None
    return LossUse(live.peak, _seconds(leaves[0].device.type, work)), reached


def _repeated(rows: Tensor, size: int) -> Tensor:
    return rows.repeat(-(-size // len(rows)), *[1] * (rows.dim() - 1))[:size].clone()


def measure_update(parameters: int, device: torch.device) -> float:
    """Seconds of an AdamW step on so many float32 parameters; of at most ten million that are measured."""
    measured = min(parameters, _UPDATED)
    weight = nn.Parameter(torch.zeros(measured, device=device))
    optimizer = torch.optim.AdamW([weight])
    weight.grad = torch.ones_like(weight)
    optimizer.step()
    return _seconds(device.type, optimizer.step) * parameters / measured


def noise_batch(samples: int, vocabulary_size: int, length: int, generator: torch.Generator, step: int = 0) -> Batch:
    """A batch of noise without pictures: every caption of `length` tokens, a sixth of them hidden."""
    input_ids = torch.randint(5, vocabulary_size, (samples, length), generator=generator)
    hidden = torch.rand(samples, length, generator=generator) < 1 / 6
    return Batch(
        step=step,
        count=samples,
        ids=torch.arange(samples),
        image_ids=torch.arange(1, samples + 1),
        languages=torch.zeros(samples, dtype=torch.int64),
        input_ids=input_ids,
        attention_mask=torch.ones_like(input_ids),
        masked_ids=torch.where(hidden, 4, input_ids),
        labels=torch.where(hidden, input_ids, -100),
        replaced=[],
        cut_captions=0,
    )

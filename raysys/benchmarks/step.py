"""A training step in plain PyTorch, and the measure that sets others beside it."""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn

from raysys.benchmarks.measure import ratio
from raysys.training.gather import gather_rows

Step = Callable[[Any], float]
"""One whole training step on a batch, forward to update; returns its loss."""


class System(Protocol):
    """What the loop needs of a system (raysys.systems)."""

    def __call__(self, batch: Any) -> dict[str, Tensor]: ...
    def losses(self, vectors: dict[str, Tensor]) -> dict[str, Tensor]: ...
    def total(self, terms: dict[str, Tensor]) -> Tensor: ...


def plain_step(
    system: System, learning_rate: float = 1e-4, clip: float = 1.0, precision: torch.dtype = torch.float32, workers: int = 1
) -> Step:
    """The loop a user would write: forward, backward, clip, AdamW; with several workers, DistributedDataParallel as it comes.

    The loss is over the batches of all workers, gathered as the training loop does it: that is not what is compared here.

    Args:
        system: an ``nn.Module``, on its device and in training mode.
        learning_rate: AdamW's, constant.
        clip: greatest norm of the gradient.
        precision: `torch.bfloat16` or `torch.float16` run forward under autocast.
        workers: processes of the group, each of which makes this step on as many rows.
    """
    assert isinstance(system, nn.Module)
    network = nn.parallel.DistributedDataParallel(system) if workers > 1 else system
    parameters = [parameter for parameter in system.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=learning_rate)
    device = parameters[0].device.type

    def step(batch: Any) -> float:
        with torch.autocast(device, dtype=precision, enabled=precision != torch.float32):
            vectors = network(batch)
            if workers > 1:
                vectors = {name: gather_rows(rows, [len(rows)] * workers) for name, rows in vectors.items()}
            loss = system.total(system.losses(vectors))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        return loss.item()

    return step


@dataclass(frozen=True)
class StepTimes:
    """Times and losses of one contender, step by step, warm-up left out."""

    seconds: list[float]
    losses: list[float]

    @property
    def median(self) -> float:
        """Median seconds per step."""
        return statistics.median(self.seconds)


def time_steps(contenders: Mapping[str, Step], batches: Iterable[Any], warm_up: int = 3, seed: int = 0) -> dict[str, StepTimes]:
    """Give every contender every batch, in turns, and time each step.

    Random numbers (dropout, views) are seeded alike before each step, so that contenders that train the same network from the same
    weights show the same losses: see :func:`greatest_difference`.

    Args:
        contenders: by name.
        batches: one step each.
        warm_up: steps at the beginning that are made and not counted.
        seed: of the random numbers.
    """
    results = {name: StepTimes([], []) for name in contenders}
    names = list(contenders)
    for number, batch in enumerate(batches):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            torch.manual_seed(seed + number)
            _wait()
            start = time.perf_counter()
            loss = contenders[name](batch)
            _wait()
            if number >= warm_up:
                results[name].seconds.append(time.perf_counter() - start)
                results[name].losses.append(loss)
    return results


def _wait() -> None:
    """For the device and the other workers."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    if dist.is_initialized() and dist.get_world_size() > 1:
        dist.barrier()


def greatest_difference(results: Mapping[str, StepTimes], reference: str) -> float:
    """Greatest relative difference of any contender's loss from that of `reference` at the same step; NaN if any loss is."""
    differences = [
        abs(loss - expected) / max(abs(expected), 1e-12)
        for times in results.values()
        for loss, expected in zip(times.losses, results[reference].losses, strict=True)
    ]
    return math.nan if any(map(math.isnan, differences)) else max(differences, default=0.0)


def step_table(results: Mapping[str, StepTimes], reference: str) -> str:
    """A table for people: median seconds per step, the median ratio to `reference` step by step, the last loss."""
    width = max(map(len, results))
    lines = [f"{'':{width}}  s per step  relative  last loss"]
    for name, times in results.items():
        relative = ratio(times.seconds, results[reference].seconds)
        lines.append(f"{name:{width}}  {times.median:10.4f}  {relative:8.3f}  {times.losses[-1]:9.4f}")
    return "\n".join(lines)

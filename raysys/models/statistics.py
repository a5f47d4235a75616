"""Running statistics of batch normalisation: what a step leaves of them does not depend on how its batch is divided."""

from types import TracebackType

import torch
import torch.distributed as dist
from torch import Tensor, nn


def running_statistics(module: nn.Module) -> list[Tensor]:
    """Mean, variance and count of every batch normalisation in training mode within `module`, the very buffers."""
    norms = [one for one in module.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm) and one.training]
    buffers = [buffer for norm in norms for buffer in (norm.running_mean, norm.running_var, norm.num_batches_tracked)]
    return [buffer for buffer in buffers if buffer is not None]


def _write(buffers: list[Tensor], values: list[Tensor]) -> None:
    for buffer, value in zip(buffers, values, strict=True):
        # Through `data`: autograd has saved these buffers for a backward pass that does not read them, and would refuse it.
        buffer.data.copy_(value)


class StatisticsUntouched:
    """``with StatisticsUntouched(module): …``: forward passes within leave no trace in the running statistics."""

    def __init__(self, module: nn.Module):
        self.module = module

    def __enter__(self) -> None:
        self.buffers = running_statistics(self.module)
        self.values = [buffer.clone() for buffer in self.buffers]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _write(self.buffers, self.values)


class RunningStatistics:
    """The running statistics of a step of many micro-batches: the mean of what each micro-batch alone would have left.

    Every micro-batch starts from the statistics that the step began with, and all weigh the same. So the result is the same
    however the micro-batches are dealt out to workers. Without any batch normalisation in training mode nothing is done. A
    step that is given up after :meth:`begin` needs no :meth:`end`: its statistics are those that it began with.
    """

    def __init__(self, system: nn.Module):
        self.system = system

    def begin(self) -> None:
        """Remember what the step begins with."""
        self._buffers = running_statistics(self.system)
        self._start = [buffer.clone() for buffer in self._buffers]
        # Summed in float64, in which the order of the sum does not show after rounding to float32.
        self._sum = self._flat().zero_() if self._buffers else torch.zeros(0)

    def collect(self) -> None:
        """Count the forward pass just made, of one micro-batch, and put the statistics back."""
        if self._buffers:
            self._sum += self._flat()
            self.restore()

    def restore(self) -> None:
        """Put the statistics back after a forward pass that must not count."""
        _write(self._buffers, self._start)

    def end(self, micro_batches: int, workers: int) -> None:
        """Write the step's result; called by every worker, also by one without a micro-batch.

        Args:
            micro_batches: that all workers together have collected, at least one.
            workers: number of ranks.
        """
        if not self._buffers:
            return
        if workers > 1:
            dist.all_reduce(self._sum)
        means = (self._sum / micro_batches).split([buffer.numel() for buffer in self._buffers])
        _write(
            self._buffers,
            [
                mean.view_as(buffer) if buffer.is_floating_point() else start + 1  # a step counts as one batch
                for mean, buffer, start in zip(means, self._buffers, self._start, strict=True)
            ],
        )

    def _flat(self) -> Tensor:
        return torch.cat([buffer.detach().flatten().double() for buffer in self._buffers])

"""p⁺_avg: how sure the latest steps were of the positives (RC³, equation 6)."""

import torch
from torch import Tensor, nn


class LossHistory(nn.Module):
    """exp(−L) of the latest steps. They lie in buffers: part of every checkpoint, and the same on every rank that pushes the same.

    Args:
        size: steps.
    """

    values: Tensor
    pushed: Tensor

    def __init__(self, size: int):
        super().__init__()
        self.register_buffer("values", torch.zeros(size))
        self.register_buffer("pushed", torch.zeros((), dtype=torch.int64))  # steps, ever

    @torch.no_grad()
    def push(self, loss: Tensor) -> None:
        """Take in a step's loss, a scalar; the oldest gives way."""
        self.values[self.pushed % len(self.values)] = torch.exp(-loss.float())
        self.pushed += 1

    def mean(self) -> Tensor:
        """The mean over the steps that there are, a float32 scalar; 0 before the first."""
        return self.values.sum() / self.pushed.clamp(min=1, max=len(self.values))

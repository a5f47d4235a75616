"""A temperature that is learned."""

import torch
from torch import Tensor, nn


class LearnedTemperature(nn.Module):
    """τ = `start` · exp(s), with s learned from 0.

    The logarithm makes a step of the optimizer the same share of τ whatever its size, and keeps τ positive; counted from the
    start, s is small, so that half-precision weights begin exactly at `start` and resolve its first small changes.
    """

    def __init__(self, start: float):
        super().__init__()
        self.start = start
        self.log_ratio = nn.Parameter(torch.zeros(1))  # not 0-dimensional, which engines that flatten weights refuse

    def forward(self, rows: int) -> Tensor:
        """τ as a column, float32 [rows], with one entry per sample: gathered and cut like any other row of a batch."""
        return (self.start * self.log_ratio.float().exp()).expand(rows)

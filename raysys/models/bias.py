"""A bias of logits that is learned."""

import torch
from torch import Tensor, nn

_STEP = 10.0


class LearnedBias(nn.Module):
    """b = `start` + 10 · s, with s learned from 0.

    Cosines divided by a temperature of 0.1 range over tens; counted in tens, the bias moves as fast as a learned temperature
    (:class:`raysys.models.temperature.LearnedTemperature`) moves them, and half-precision weights begin exactly at `start`.
    """

    def __init__(self, start: float):
        super().__init__()
        self.start = start
        self.tens = nn.Parameter(torch.zeros(1))  # not 0-dimensional, which engines that flatten weights refuse

    def forward(self, rows: int) -> Tensor:
        """b as a column, float32 [rows], with one entry per sample: gathered and cut like any other row of a batch."""
        return (self.start + _STEP * self.tens.float()).expand(rows)

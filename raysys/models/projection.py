"""Projections of sentences into spaces of their own."""

import torch.nn.functional as F
from torch import Tensor, nn


class Projection(nn.Module):
    """Two layers with ReLU between: [n, inputs] → float32 [n, size], of any length."""

    def __init__(self, inputs: int, hidden: int, size: int):
        super().__init__()
        self.dense = nn.Linear(inputs, hidden)
        self.out = nn.Linear(hidden, size)
        # Vectors are compared by their angles, and what all of them have in common would make these small.
        nn.init.zeros_(self.dense.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        # encoders return float32 even where an engine holds the weights in bfloat16
        projected: Tensor = self.out(F.relu(self.dense(vectors.to(self.dense.weight.dtype))))
        return projected.float()

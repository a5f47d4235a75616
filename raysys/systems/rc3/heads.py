"""What stands on the network in pre-training."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MatchingHead(nn.Module):
    """A layer that scores whether image and text belong together: VtR, float [n, d] → float32 [n], positive where they do."""

    def __init__(self, size: int):
        super().__init__()
        self.dense = nn.Linear(size, 1)

    def forward(self, vectors: Tensor) -> Tensor:
        return self.dense(vectors.to(self.dense.weight.dtype))[:, 0].float()


class RegionHead(nn.Module):
    """From the state at a hidden region to its features: float [k, d] → float32 [k, D] (UNITER's masked region feature regression)."""

    def __init__(self, size: int, region_size: int):
        super().__init__()
        self.dense, self.norm, self.out = nn.Linear(size, size), nn.LayerNorm(size), nn.Linear(size, region_size)

    def forward(self, states: Tensor) -> Tensor:
        return self.out(self.norm(F.gelu(self.dense(states)))).float()


class ImageGate(nn.Module):
    """An image's global vector opens and closes the entries of the states of its text (after MeMAD's visual gate, Grönroos et al. 2018).

    states ⊙ 2σ(W·g + b), with W and b 0 at the start, so that the network begins as it is; g is the mean of the regions' features, brought
    to unit length, since nothing is known of their scale: of large ones, a few steps would open or close every gate for good [ours]. Rows
    without regions are left as they are.
    """

    def __init__(self, size: int, region_size: int):
        super().__init__()
        self.dense = nn.Linear(region_size, size)
        nn.init.zeros_(self.dense.weight)
        nn.init.zeros_(self.dense.bias)

    def forward(self, states: Tensor, regions: Tensor, region_mask: Tensor) -> Tensor:
        """Gated states, float [n, S, d].

        Args:
            states: float [n, S, d].
            regions: float [n, R, D].
            region_mask: int64 [n, R].
        """
        number = region_mask.sum(dim=1, keepdim=True)
        features = torch.where(region_mask.bool()[:, :, None], regions, 0).sum(dim=1) / number.clamp(min=1)
        gates = 2 * torch.sigmoid(self.dense(F.normalize(features, dim=1).to(self.dense.weight.dtype)))
        return states * torch.where(number > 0, gates, 1)[:, None]

"""L_ITM, image–text matching: whether an image and a text belong together (RC³ §2.3.1, equation 3)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from raysys.objectives.similarity import full_precision


@full_precision
def matching_loss(matching: Tensor, other: Tensor, counted: Tensor) -> Tensor:
    """Mean binary cross-entropy of sigmoid(score), 1 for an image with its text, 0 for one with another text; as many of either.

    Args:
        matching: scores of images with their own texts, float [N].
        other: scores of the same images with other texts, float [N].
        counted: bool [N], whether there is another text for the row's image.

    Returns:
        float scalar; 0 with zero gradient where no row is counted.
    """
    losses = (F.softplus(-matching) + F.softplus(other)) / 2
    return torch.where(counted, losses, 0).sum() / counted.sum().clamp(min=1)

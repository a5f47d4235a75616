"""L_v, image–image: two views of an image are alike, views of other images are not (SimCLR)."""

import torch
from torch import Tensor

from raysys.objectives.similarity import (
    cosine_similarity,
    full_precision,
    scale_by_temperature,
    uniform_targets,
    weighted_cross_entropy,
    with_diagonal,
)


@full_precision
def nt_xent(view_1: Tensor, view_2: Tensor, temperature: float | Tensor, same_image: Tensor) -> Tensor:
    """SimCLR's NT-Xent over the 2N views of the global batch.

    Each view is compared with the 2N − 1 others; its target is the other view of its row. Where other rows show the same image,
    the target is spread evenly over all views of that image, so that none of them is a negative.

    Args:
        view_1, view_2: vectors of the two views of each image, float [N, d]; any length, they are normalised here.
        temperature: τ, a number or a tensor [1].
        same_image: bool [N, N]; the diagonal counts as true.

    Returns:
        float scalar.
    """
    views = torch.cat([view_1, view_2])
    itself = torch.eye(len(views), dtype=torch.bool, device=views.device)
    positives = with_diagonal(same_image).repeat(2, 2) & ~itself
    logits = scale_by_temperature(cosine_similarity(views, views), temperature)
    return weighted_cross_entropy(logits, uniform_targets(positives, logits.dtype), excluded=itself)

"""L_v, image–image: two views of an image are alike, views of other images are not (SimCLR)."""

import torch
from torch import Tensor

from raysys.objectives.blocks import BLOCK_PAIRS, mean_over_blocks, row_blocks
from raysys.objectives.similarity import (
    clamp_temperature,
    full_precision,
    itself,
    leave_out_itself,
    same_image_pairs,
    uniform_targets,
    unit_vectors,
    weighted_cross_entropy,
)


@full_precision
def nt_xent(view_1: Tensor, view_2: Tensor, temperature: float | Tensor, image_ids: Tensor, block_pairs: int = BLOCK_PAIRS) -> Tensor:
    """SimCLR's NT-Xent over the 2N views of the global batch.

    Each view is compared with the 2N − 1 others; its target is the other view of its row. Where other rows show the same image,
    the target is spread evenly over all views of that image, so that none of them is a negative.

    Args:
        view_1, view_2: vectors of the two views of each image, float [N, d]; any length, they are normalised here.
        temperature: τ, a number or a tensor of one element.
        image_ids: int64 [N]; equal numbers mean the same image, 0 an image like no other.
        block_pairs: pairs that are compared at a time.

    Returns:
        float scalar.
    """
    images = len(view_1)
    shown = image_ids.repeat(2)
    other_view = torch.arange(2 * images, device=image_ids.device).roll(images)

    def others(rows: slice, views: Tensor, temperature: float | Tensor) -> tuple[Tensor, Tensor]:
        positives = same_image_pairs(shown, rows).scatter_(1, other_view[rows, None], True)
        itself(positives, rows).fill_(False)
        logits = leave_out_itself(views[rows] @ views.T / temperature, rows)
        return weighted_cross_entropy(logits, uniform_targets(positives, logits.dtype))

    views = unit_vectors(torch.cat([view_1, view_2]))
    return mean_over_blocks(others, row_blocks(2 * images, 2 * images, block_pairs), views, clamp_temperature(temperature))

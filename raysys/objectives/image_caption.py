"""L_x, image–caption: a caption is closest to its own image, and an image to its own caption (InfoNCE)."""

from torch import Tensor

from raysys.objectives.blocks import BLOCK_PAIRS, mean_over_blocks, row_blocks
from raysys.objectives.similarity import (
    clamp_temperature,
    full_precision,
    same_image_pairs,
    uniform_targets,
    unit_vectors,
    weighted_cross_entropy,
)


@full_precision
def info_nce(images: Tensor, captions: Tensor, temperature: float | Tensor, image_ids: Tensor, block_pairs: int = BLOCK_PAIRS) -> Tensor:
    """L_x = ½ (InfoNCE image→caption + InfoNCE caption→image) over the global batch.

    The target of a row is its own pair; where other rows show the same image, it is spread evenly over all of them.

    Args:
        images, captions: vectors of the pairs, float [N, d]; any length, they are normalised here.
        temperature: τ, a number or a tensor of one element.
        image_ids: int64 [N]; equal numbers mean the same image, 0 an image like no other.
        block_pairs: pairs that are compared at a time.

    Returns:
        float scalar.
    """

    def both_ways(rows: slice, images: Tensor, captions: Tensor, temperature: float | Tensor) -> tuple[Tensor, Tensor]:
        targets = uniform_targets(same_image_pairs(image_ids, rows), images.dtype)
        logits = images[rows] @ captions.T / temperature
        # Where one block holds all pairs, the way back is the same table, turned.
        turned = logits.T if len(logits) == len(captions) else captions[rows] @ images.T / temperature
        loss, weight = weighted_cross_entropy(logits, targets)
        back, again = weighted_cross_entropy(turned, targets)
        return loss + back, weight + again

    rows = len(images)
    return mean_over_blocks(
        both_ways, row_blocks(rows, rows, block_pairs), unit_vectors(images), unit_vectors(captions), clamp_temperature(temperature)
    )

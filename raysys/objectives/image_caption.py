"""L_x, image–caption: a caption is closest to its own image, and an image to its own caption."""

from collections.abc import Callable

from torch import Tensor

from raysys.objectives.blocks import BLOCK_PAIRS, mean_over_blocks, row_blocks
from raysys.objectives.contrast import pair_logits, sigmoid_contrast, softmax_contrast
from raysys.objectives.similarity import clamp_temperature, full_precision, same_image_pairs, uniform_targets, unit_vectors


@full_precision
def info_nce(
    images: Tensor,
    captions: Tensor,
    temperature: float | Tensor,
    image_ids: Tensor,
    block_pairs: int = BLOCK_PAIRS,
    hardness: float = 0.0,
) -> Tensor:
    """L_x = ½ (InfoNCE image→caption + InfoNCE caption→image) over the global batch.

    The target of a row is its own pair; where other rows show the same image, it is spread evenly over all of them.

    Args:
        images, captions: vectors of the pairs, float [N, d]; any length, they are normalised here.
        temperature: τ, a number or a tensor of one element.
        image_ids: int64 [N]; equal numbers mean the same image, 0 an image like no other.
        block_pairs: pairs that are compared at a time.
        hardness: β by which hard negatives weigh more (:func:`raysys.objectives.contrast.log_weights_of_negatives`).

    Returns:
        float scalar.
    """

    def tell_apart(logits: Tensor, same: Tensor) -> tuple[Tensor, Tensor]:
        return softmax_contrast(logits, uniform_targets(same, logits.dtype), hardness)

    return _both_ways(tell_apart, images, captions, temperature, None, image_ids, block_pairs)


@full_precision
def pairwise_sigmoid(
    images: Tensor,
    captions: Tensor,
    temperature: float | Tensor,
    bias: float | Tensor,
    image_ids: Tensor,
    block_pairs: int = BLOCK_PAIRS,
    hardness: float = 0.0,
) -> Tensor:
    """L_x as −(1/N) Σ_ij log σ(z_ij (cos_ij/τ + b)), z = 1 for pairs of the same image and −1 for others (SigLIP, Zhai et al. 2023).

    Every pair is judged by itself. Where rows share an image, the sum is divided by the number of matches
    (:func:`raysys.objectives.contrast.sigmoid_contrast`).

    Args:
        images, captions, temperature, image_ids, block_pairs: as in :func:`info_nce`.
        bias: b, a number or a tensor of one element; negative, for most pairs do not match.
        hardness: as in :func:`info_nce`; an image weighs the captions, and a caption the images, and both count half.

    Returns:
        float scalar.
    """

    def tell_apart(logits: Tensor, same: Tensor) -> tuple[Tensor, Tensor]:
        return sigmoid_contrast(logits, same.to(logits.dtype), hardness)

    return _both_ways(tell_apart, images, captions, temperature, bias, image_ids, block_pairs)


def _both_ways(
    tell_apart: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    images: Tensor,
    captions: Tensor,
    temperature: float | Tensor,
    bias: float | Tensor | None,
    image_ids: Tensor,
    block_pairs: int,
) -> Tensor:
    """Mean of ``tell_apart(logits, whether they show the same image)`` from images to captions and back."""

    def both(
        rows: slice, images: Tensor, captions: Tensor, temperature: float | Tensor, bias: float | Tensor | None
    ) -> tuple[Tensor, Tensor]:
        same = same_image_pairs(image_ids, rows)
        logits = pair_logits(images[rows], captions, temperature, bias)
        # Where one block holds all pairs, the way back is the same table, turned.
        turned = logits.T if len(logits) == len(captions) else pair_logits(captions[rows], images, temperature, bias)
        loss, weight = tell_apart(logits, same)
        back, again = tell_apart(turned, same)
        return loss + back, weight + again

    rows = len(images)
    vectors = unit_vectors(images), unit_vectors(captions)
    return mean_over_blocks(both, row_blocks(rows, rows, block_pairs), *vectors, clamp_temperature(temperature), bias)

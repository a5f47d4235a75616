"""L_t, caption–caption: two captions are alike as far as their images are (Globetrotter)."""

from typing import Literal

import torch
from torch import Tensor

from raysys.objectives.similarity import full_precision, scale_by_temperature, weighted_cross_entropy

LOWEST_CONFIDENCE, HIGHEST_CONFIDENCE = 0.75, 1.25
ROUNDING = 1e-6  # image–caption similarities closer together than this differ by rounding alone


@torch.no_grad()
@full_precision
def transitive_similarity(
    image_similarity: Tensor,
    image_caption: Tensor,
    margin: float = 0.4,
    variant: Literal["product", "rescaled"] = "product",
) -> Tensor:
    """How alike captions i and j should be, judged by their images: α, without gradient.

    ``product`` is the paper's α_ij = f(α^x_ii · α^v_ij · α^x_jj) with f(x) = max(0, x − m) / (1 − m). As printed, two negative
    image–caption similarities cancel. ``rescaled`` is what its authors published as code: α^v_ij · r_i · r_j, where r is α^x_ii min–max
    rescaled over the batch to [0.75, 1.25] (1 where all are equal); divided by its greatest value off the diagonal; then f.

    Args:
        image_similarity: α^v, cosines of all pairs of images, float [N, N].
        image_caption: α^x_ii, cosine of each image with its own caption, float [N].
        margin: m, below 1.
        variant: see above.

    Returns:
        float [N, N] in [0, 1], zero on the diagonal.

    Raises:
        ValueError: margin not below 1, or an unknown variant.
    """
    if not margin < 1:
        raise ValueError(f"the margin of the transitive similarity must be below 1, not {margin}")
    if variant == "product":
        confidence = image_caption
    elif variant == "rescaled":
        confidence = _rescale(image_caption)
    else:
        raise ValueError(f"unknown transitive similarity {variant!r}; known are 'product' and 'rescaled'")
    alpha = (image_similarity * confidence[:, None] * confidence[None, :]).fill_diagonal_(0)
    if variant == "rescaled" and alpha.numel():
        greatest = alpha.max()
        alpha = alpha / torch.where(greatest > 0, greatest, 1)
    return ((alpha - margin) / (1 - margin)).clamp(0, 1).fill_diagonal_(0)


def _rescale(values: Tensor) -> Tensor:
    if not len(values):
        return values
    low, high = values.min(), values.max()
    span = high - low
    equal = span <= ROUNDING
    share = (values - low) / torch.where(equal, 1, span)
    return torch.where(equal, 1, LOWEST_CONFIDENCE + (HIGHEST_CONFIDENCE - LOWEST_CONFIDENCE) * share)


@full_precision
def transitive_loss(caption_similarity: Tensor, alpha: Tensor, temperature: float | Tensor, same_image: Tensor) -> Tensor:
    """L_t = −(1/Σα) Σ_i Σ_{j≠i} α_ij · log [ exp(β_ij/τ) / Σ_{k≠i} exp(β_ik/τ) ], over the global batch.

    Captions of the same image are true positives: their α is 1.

    Args:
        caption_similarity: β, cosines of all pairs of captions, float [N, N].
        alpha: targets in [0, 1], float [N, N]; taken as constant, the diagonal is not used. See :func:`transitive_similarity`.
        temperature: τ, a number or a tensor [1].
        same_image: bool [N, N].

    Returns:
        float scalar; 0 with zero gradient where every α is 0.
    """
    itself = torch.eye(len(alpha), dtype=torch.bool, device=alpha.device)
    weights = alpha.detach().to(caption_similarity.dtype).masked_fill(same_image.bool(), 1)
    return weighted_cross_entropy(scale_by_temperature(caption_similarity, temperature), weights, excluded=itself)

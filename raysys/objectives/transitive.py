"""L_t, caption–caption: two captions are alike as far as their images are (Globetrotter)."""

import functools
from typing import Literal

import torch
from torch import Tensor

from raysys.models.queue import Neighbours
from raysys.objectives.blocks import BLOCK_PAIRS, mean_over_blocks, row_blocks
from raysys.objectives.contrast import pair_logits, sigmoid_contrast, softmax_contrast
from raysys.objectives.similarity import (
    clamp_temperature,
    full_precision,
    itself,
    leave_out_itself,
    same_image_pairs,
    unit_vectors,
)

LOWEST_CONFIDENCE, HIGHEST_CONFIDENCE = 0.75, 1.25
ROUNDING = 1e-6  # image–caption similarities closer together than this differ by rounding alone
ALL = slice(None)

Variant = Literal["product", "rescaled"]


@torch.no_grad()
@full_precision
def transitive_similarity(image_similarity: Tensor, image_caption: Tensor, margin: float = 0.4, variant: Variant = "product") -> Tensor:
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
    chain = _chain(image_similarity, _confidence(image_caption, margin, variant), ALL)
    greatest = chain.max() if variant == "rescaled" and chain.numel() else None
    return _above_margin(chain, greatest, margin).fill_diagonal_(0)


@full_precision
def transitive_loss(
    captions: Tensor,
    images: Tensor,
    image_captions: Tensor,
    temperature: float | Tensor,
    image_ids: Tensor,
    margin: float = 0.4,
    variant: Variant = "product",
    block_pairs: int = BLOCK_PAIRS,
    bias: float | Tensor | None = None,
    hardness: float = 0.0,
    neighbours: Neighbours | None = None,
) -> Tensor:
    """L_t = −(1/Σα) Σ_i Σ_{j≠i} α_ij · log [ exp(β_ij/τ) / Σ_{k≠i} exp(β_ik/τ) ], over the global batch.

    Captions of the same image are true positives: their α is 1. Vectors may have any length, they are normalised here.

    With a bias b each pair is judged by itself (SigLIP, with soft targets): Σ_i Σ_{j≠i} of the binary cross-entropy of σ(β_ij/τ + b)
    with α_ij, divided by Σ_i max(1, Σ_j α_ij) (:func:`raysys.objectives.contrast.sigmoid_contrast`).

    Args:
        captions: where captions are compared with captions, float [N, d]; β is their cosine.
        images, image_captions: where images are compared with images and with their captions, float [N, e]; constants, of which
            α is made as :func:`transitive_similarity` says.
        temperature: τ, a number or a tensor of one element.
        image_ids: int64 [N]; equal numbers mean the same image, 0 an image like no other.
        margin: m, below 1.
        variant: of the transitive similarity.
        block_pairs: pairs that are compared at a time.
        bias: b of the sigmoid loss, a number or a tensor of one element; None: softmax.
        hardness: β by which negatives, pairs with α = 0, weigh the more the more alike they are
            (:func:`raysys.objectives.contrast.log_weights_of_negatives`).
        neighbours: further j and k, constants, to which images and captions of the batch are compared, but for those of the same image:
            most likely it is the same sample, met again. Min, max and the greatest of the ``rescaled`` similarity are then those of
            batch and neighbours together.

    Returns:
        float scalar; by softmax, 0 with zero gradient where every α is 0.

    Raises:
        ValueError: as :func:`transitive_similarity`.
    """
    seen, batch = unit_vectors(images.detach()), len(captions)
    believed = (seen * unit_vectors(image_captions.detach())).sum(dim=-1)
    if neighbours is not None:  # more columns of every table; its rows are those of the batch
        captions = torch.cat([captions, neighbours.captions[:, : captions.shape[1]]])  # cut where the captions are cut
        seen, believed = torch.cat([seen, unit_vectors(neighbours.images)]), torch.cat([believed, neighbours.image_caption])
        image_ids = torch.cat([image_ids, neighbours.image_ids])
    confidence, blocks = _confidence(believed, margin, variant), row_blocks(batch, len(captions), block_pairs)

    def met_again(rows: slice) -> Tensor:
        """Which neighbours show the image of a row of the batch, bool [rows, n]."""
        again = same_image_pairs(image_ids, rows)
        again[:, :batch] = False
        return again

    # Remembers the last block: where there is one alone, its greatest value and the loss need it computed once.
    @functools.lru_cache(maxsize=1)
    @torch.no_grad()
    def chain(start: int, stop: int) -> Tensor:
        rows = slice(start, stop)
        return _chain(seen[rows] @ seen.T, confidence, rows).masked_fill_(met_again(rows), 0)

    greatest = torch.stack([chain(rows.start, rows.stop).max() for rows in blocks]).max() if variant == "rescaled" and blocks else None

    contrast = softmax_contrast if bias is None else sigmoid_contrast

    def others(rows: slice, captions: Tensor, temperature: float | Tensor, bias: float | Tensor | None) -> tuple[Tensor, Tensor]:
        again = met_again(rows)
        same = same_image_pairs(image_ids, rows) & ~again
        alpha = _above_margin(chain(rows.start, rows.stop), greatest, margin).masked_fill_(same, 1)
        itself(alpha, rows).fill_(0)
        logits = leave_out_itself(pair_logits(captions[rows], captions, temperature, bias), rows)
        if neighbours is not None:
            logits = logits.masked_fill(again, torch.finfo(logits.dtype).min)
        return contrast(logits, alpha, hardness)

    return mean_over_blocks(others, blocks, unit_vectors(captions), clamp_temperature(temperature), bias)


def _confidence(image_caption: Tensor, margin: float, variant: str) -> Tensor:
    """How far each row's caption is to be believed: α^x_ii or r_i, float [N]."""
    if not margin < 1:
        raise ValueError(f"the margin of the transitive similarity must be below 1, not {margin}")
    if variant not in ("product", "rescaled"):
        raise ValueError(f"unknown transitive similarity {variant!r}; known are 'product' and 'rescaled'")
    if variant == "product" or not len(image_caption):
        return image_caption
    low, high = image_caption.min(), image_caption.max()
    span = high - low
    equal = span <= ROUNDING
    share = (image_caption - low) / torch.where(equal, 1, span)
    return torch.where(equal, 1, LOWEST_CONFIDENCE + (HIGHEST_CONFIDENCE - LOWEST_CONFIDENCE) * share)


def _chain(image_similarity: Tensor, confidence: Tensor, rows: slice) -> Tensor:
    """Caption to image to image to caption, for a block of rows: float [r, N], zero where a row meets itself."""
    chain = image_similarity * confidence[rows, None] * confidence[None, :]
    itself(chain, rows).fill_(0)
    return chain


def _above_margin(chain: Tensor, greatest: Tensor | None, margin: float) -> Tensor:
    """f, of `chain` divided by the greatest of the whole batch where that is given and positive; in [0, 1]."""
    if greatest is not None:
        chain = chain / torch.where(greatest > 0, greatest, 1)
    return ((chain - margin) / (1 - margin)).clamp_(0, 1)

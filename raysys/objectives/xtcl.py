"""L_XTCL, cross-lingual textual contrastive learning: a text is nearer to its translation than to other texts (RC³ §2.3.3)."""

import torch
from torch import Tensor

from raysys.objectives.blocks import BLOCK_PAIRS, mean_over_blocks, row_blocks
from raysys.objectives.interpolation import contrast, distances, pair_distances
from raysys.objectives.related import related_rows
from raysys.objectives.similarity import full_precision


@full_precision
def xtcl_loss(
    first: Tensor, second: Tensor, image_ids: Tensor, texts: Tensor, power: float | Tensor = 0.0, block_pairs: int = BLOCK_PAIRS
) -> Tensor:
    """Mean over the pairs of L̃(x^li), with x^li the anchor, x^lj its positive and all texts of the other pairs its negatives.

    Equations 7 and 8; 4 with `power` 0. Pairs of the same image, or with a text in common, are no negatives of one another. A pair that
    has no negatives has nothing to be told from, and is not counted.

    Args:
        first: TR of x^li, float [N, d].
        second: TR of x^lj, float [N, d].
        image_ids: int64 [N]; equal numbers mean the same image, 0 none.
        texts: int64 [N, 2], equal numbers mean equal texts (:func:`raysys.objectives.related.text_numbers`).
        power: ζ · p⁺_avg (:func:`raysys.objectives.interpolation.drawn_nearer`).
        block_pairs: pairs that are compared at a time.

    Returns:
        float scalar; 0 with zero gradient where no pair is counted.
    """

    def losses(rows: slice, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        anchors, others = first[rows], ~related_rows(image_ids, texts, rows)
        negatives = pair_distances(anchors, torch.cat([first, second]))
        found = contrast(distances(anchors, second[rows]), negatives, others.repeat(1, 2), power)
        counted = others.any(dim=1)
        return torch.where(counted, found, 0).sum(), counted.sum()

    return mean_over_blocks(losses, row_blocks(len(first), 2 * len(first), block_pairs), first, second)

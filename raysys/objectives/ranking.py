"""Sentences projected into the space of pictures are closer to their own picture than to others (CM, and Cap2Img)."""

import torch
from torch import Tensor

from raysys.objectives.blocks import BLOCK_PAIRS, mean_over_blocks, row_blocks
from raysys.objectives.cluster import mean_hinge
from raysys.objectives.negatives import negative_rows
from raysys.objectives.similarity import full_precision, same_image_pairs, unit_vectors


@full_precision
def cross_modal_loss(projected: Tensor, images: Tensor, image_ids: Tensor, draws: Tensor, margin: float = 0.5) -> Tensor:
    """Mean over the sentences s of ⌊γ' + cos(f(s), i⁻) − cos(f(s), i_s)⌋₊, with i⁻ the picture of a random row of the batch.

    The baseline CM of "Incorporating Visual Semantics into Sentence Representations within a Grounded Space", section 4.2, as a mean
    instead of the sum that is printed there. Vectors may have any length, they are normalised here.

    Args:
        projected: f(s), float [N, d].
        images: the rows' pictures, constants, float [N, d].
        image_ids: int64 [N]; equal numbers mean the same picture, 0 a row without one, which is not counted.
        draws: float [N] in [0, 1), uniform: chooses i⁻ (:func:`raysys.objectives.negatives.negative_rows`).
        margin: γ'.

    Returns:
        float scalar; 0 with zero gradient where no two rows show different pictures.
    """
    negatives = negative_rows(image_ids, draws)
    pictures = unit_vectors(images.detach())
    return mean_hinge(margin, unit_vectors(projected), pictures, pictures[negatives], negatives >= 0)


@full_precision
def ranking_loss(projected: Tensor, images: Tensor, image_ids: Tensor, margin: float = 0.5, block_pairs: int = BLOCK_PAIRS) -> Tensor:
    """Cap2Img: a sentence and its picture are to be closer than either is to all the batch's rows of other pictures.

    Mean over the sentences s of Σ_{i⁻} ⌊γ' − cos(f(s), i_s) + cos(f(s), i⁻)⌋₊ + Σ_{s⁻} ⌊γ' − cos(f(s), i_s) + cos(f(s⁻), i_s)⌋₊, as in
    "Learning Visually Grounded Sentence Representations" (Kiela et al. 2018), section 3. Vectors may have any length, they are
    normalised here.

    Args:
        projected, images, image_ids, margin: as in :func:`cross_modal_loss`.
        block_pairs: pairs that are compared at a time.

    Returns:
        float scalar; 0 with zero gradient where no two rows show different pictures.
    """
    pictured = image_ids.nonzero()[:, 0]
    ids, pictures = image_ids[pictured], unit_vectors(images[pictured].detach())

    def hinges(rows: slice, sentences: Tensor) -> tuple[Tensor, Tensor]:
        own = (sentences[rows] * pictures[rows]).sum(dim=-1, keepdim=True)
        same = same_image_pairs(ids, rows)
        to_pictures = torch.relu(margin - own + sentences[rows] @ pictures.T)
        to_sentences = torch.relu(margin - own + pictures[rows] @ sentences.T)
        return (to_pictures + to_sentences).masked_fill(same, 0).sum(), (~same).any(dim=-1).sum()

    return mean_over_blocks(hinges, row_blocks(len(ids), len(ids), block_pairs), unit_vectors(projected[pictured]))

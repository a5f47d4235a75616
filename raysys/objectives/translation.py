"""Supervised caption–caption loss: L_t with α = 1 for captions that are known to say the same, 0 otherwise (the paper's upper bound)."""

from torch import Tensor

from raysys.objectives.blocks import BLOCK_PAIRS, mean_over_blocks, row_blocks
from raysys.objectives.similarity import clamp_temperature, full_precision, itself, leave_out_itself, unit_vectors, weighted_cross_entropy


@full_precision
def translation_loss(captions: Tensor, temperature: float | Tensor, concepts: Tensor, block_pairs: int = BLOCK_PAIRS) -> Tensor:
    """−(1/Σα) Σ_i Σ_{j≠i} α_ij · log [ exp(β_ij/τ) / Σ_{k≠i} exp(β_ik/τ) ] with α_ij = 1 where i and j are of one concept, else 0.

    Args:
        captions: float [N, d]; β is their cosine; any length, they are normalised here.
        temperature: τ, a number or a tensor of one element.
        concepts: int64 [N]; equal numbers mean captions that say the same.
        block_pairs: pairs that are compared at a time.

    Returns:
        float scalar; 0 with zero gradient where no two captions are of one concept.
    """

    def others(rows: slice, captions: Tensor, temperature: float | Tensor) -> tuple[Tensor, Tensor]:
        same = (concepts[rows, None] == concepts[None, :]).to(captions.dtype)
        itself(same, rows).fill_(0)
        return weighted_cross_entropy(leave_out_itself(captions[rows] @ captions.T / temperature, rows), same)

    rows = len(captions)
    return mean_over_blocks(others, row_blocks(rows, rows, block_pairs), unit_vectors(captions), clamp_temperature(temperature))

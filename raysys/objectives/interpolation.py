"""Contrast by Euclidean distance, with negatives drawn towards their anchor (Wei et al. 2021, "On Learning Universal Representations
Across Languages"; RC³, equations 4–7 and 9)."""

import torch
from torch import Tensor

_NOTHING = 1e-12  # of the squared lengths of two vectors: a squared distance below this is rounding


def distances(vectors: Tensor, others: Tensor) -> Tensor:
    """‖a − b‖ along the last dimension: float [..., d] twice, broadcast, → [...]. Equal vectors are at distance 0, with gradient 0."""
    squares = (vectors - others).square().sum(dim=-1)
    return _root(squares, squares == 0)


def pair_distances(vectors: Tensor, others: Tensor) -> Tensor:
    """‖a − b‖ of all pairs: float [r, d] and [m, d] → [r, m], without a tensor of r · m · d numbers. Equal vectors as above.

    From products of the vectors, in float64: in float32 what is left of near vectors' products would be rounding.
    """
    rows, columns = vectors.double(), others.double()
    lengths = rows.square().sum(dim=1)[:, None] + columns.square().sum(dim=1)
    squares = lengths - 2 * rows @ columns.T
    return _root(squares, squares <= _NOTHING * lengths).to(vectors.dtype)


def _root(squares: Tensor, nothing: Tensor) -> Tensor:
    """√ with a gradient of 0 where there is `nothing`; what is not finite stays so."""
    return torch.where(nothing, 0, torch.where(nothing, 1, squares).sqrt())


def drawn_nearer(negatives: Tensor, positives: Tensor, power: float | Tensor) -> Tensor:
    """d̃⁻, the distances of interpolated negatives: λ · d⁻ with λ = (d⁺/d⁻)^power where d⁻ > d⁺, else d⁻. λ is a constant.

    Args:
        negatives: d⁻, float [r, m].
        positives: d⁺ of each row, float [r].
        power: ζ · p⁺_avg; with 0, negatives stay where they are.
    """
    with torch.no_grad():
        further = negatives > positives[:, None]
        ratio = torch.where(further, positives[:, None] / torch.where(further, negatives, 1), 1) ** power
    return negatives * ratio


def contrast(positives: Tensor, negatives: Tensor, present: Tensor, power: float | Tensor) -> Tensor:
    """−log [ exp(−d⁺) / (exp(−d⁺) + Σ exp(−d̃⁻)) ] of each row: float [r].

    Args:
        positives: d⁺, float [r].
        negatives: d⁻, float [r, m].
        present: bool [r, m], which negatives there are.
        power: as :func:`drawn_nearer` takes it.
    """
    lowest = torch.finfo(negatives.dtype).min
    scores = torch.where(present, -drawn_nearer(negatives, positives, power), lowest)
    return torch.logaddexp(-positives, scores.logsumexp(dim=1)) + positives

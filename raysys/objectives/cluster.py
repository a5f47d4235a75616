"""L_C, cluster: sentences of one picture are closer together than sentences of different pictures."""

import torch
from torch import Tensor

from raysys.objectives.negatives import negative_rows
from raysys.objectives.similarity import full_precision, unit_vectors


@full_precision
def cluster_loss(grounded: Tensor, others: Tensor, image_ids: Tensor, has_other: Tensor, draws: Tensor, margin: float = 0.5) -> Tensor:
    """Mean over the sentences s of ⌊γ − cos(g(s), g(s⁺)) + cos(g(s), g(s⁻))⌋₊, with s⁻ a random row of the batch.

    "Incorporating Visual Semantics into Sentence Representations within a Grounded Space", equation 2. The paper prints the sum; with
    the mean, the weight of the loss means the same for every size of batch. Vectors may have any length, they are normalised here.

    Args:
        grounded: g(s), float [N, d].
        others: g(s⁺), of another sentence of the row's picture, float [N, d].
        image_ids: int64 [N]; equal numbers mean the same picture, 0 a row without one.
        has_other: bool [N], whether the row has an s⁺. Only rows that have one and for which there is an s⁻ are counted.
        draws: float [N] in [0, 1), uniform: chooses s⁻ (:func:`raysys.objectives.negatives.negative_rows`).
        margin: γ.

    Returns:
        float scalar; 0 with zero gradient where no row counts.
    """
    negatives = negative_rows(image_ids, draws)
    sentences = unit_vectors(grounded)
    return mean_hinge(margin, sentences, unit_vectors(others), sentences[negatives], has_other & (negatives >= 0))


def mean_hinge(margin: float, vectors: Tensor, matches: Tensor, negatives: Tensor, counted: Tensor) -> Tensor:
    """Mean over the rows `counted`, bool [N], of ⌊margin − cos(vector, match) + cos(vector, negative)⌋₊, of unit vectors [N, d]."""
    hinges = torch.relu(margin - (vectors * matches).sum(dim=-1) + (vectors * negatives).sum(dim=-1))
    return torch.where(counted, hinges, 0).sum() / counted.sum().clamp(min=1)

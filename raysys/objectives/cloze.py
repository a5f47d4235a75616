"""L_c, cloze: predict masked tokens of the captions (BERT)."""

from torch import Tensor

from raysys.objectives.similarity import full_precision


@full_precision
def cloze_loss(loss_sums: Tensor, counts: Tensor) -> Tensor:
    """Mean cross-entropy of the predicted tokens of the global batch.

    Every predicted token weighs the same. A mean of per-worker means would weigh a token by how few its worker had.

    Args:
        loss_sums: each sample's cross-entropy summed over its predicted tokens, float [N].
        counts: each sample's number of predicted tokens, [N].

    Returns:
        float scalar; 0 with zero gradient where nothing was predicted.
    """
    total = counts.sum()
    return loss_sums.sum() * (total > 0) / total.clamp(min=1)

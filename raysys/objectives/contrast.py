"""How a row tells its matches from the others: by one softmax over the row, or by a sigmoid for each pair; and hard negatives."""

import torch
import torch.nn.functional as F
from torch import Tensor

from raysys.objectives.similarity import weighted_cross_entropy


def pair_logits(rows: Tensor, columns: Tensor, temperature: float | Tensor, bias: float | Tensor | None = None) -> Tensor:
    """cos/τ + b of all pairs, float [n, m], of unit vectors [n, d] and [m, d]; a softmax needs no bias."""
    logits = rows @ columns.T / temperature
    return logits if bias is None else logits + bias


def softmax_contrast(logits: Tensor, targets: Tensor, hardness: float = 0.0) -> tuple[Tensor, Tensor]:
    """As :func:`raysys.objectives.similarity.weighted_cross_entropy`, with hard negatives: Σ_i Σ_j of the losses and of the targets.

    Args:
        logits: float [n, m]; what has the lowest finite number counts for nothing.
        targets: float [n, m], not negative, constant; 0 says that a pair is a negative, or is left out.
        hardness: β of :func:`log_weights_of_negatives`, which are added to the logits; 0: all negatives weigh the same.
    """
    if hardness:
        logits = logits + log_weights_of_negatives(logits, targets, hardness)
    return weighted_cross_entropy(logits, targets)


def sigmoid_contrast(logits: Tensor, targets: Tensor, hardness: float = 0.0) -> tuple[Tensor, Tensor]:
    """Σ_ij of the binary cross-entropies −y log σ(l) − (1 − y) log σ(−l), and Σ_i max(1, Σ_j y_ij), by which they are to be divided.

    Where each row has one match, the quotient is the loss of "Sigmoid Loss for Language Image Pre-Training" (Zhai et al. 2023,
    equation 1): rows are averaged, and over each row the pairs are summed, so that a match weighs as much as in a softmax. Rows with
    many matches count by those, or the loss would grow with their number; rows with hardly any count as one, for divided by next to
    nothing, negatives would outweigh all else.

    Args:
        logits: float [n, m]; what has the lowest finite number counts for nothing.
        targets: y, float [n, m] in [0, 1], constant; 0 for what is left out. With soft targets the least loss is their entropy, not 0.
        hardness: β of :func:`log_weights_of_negatives`, whose exponentials the losses of negatives are multiplied by; 0: all weigh the
            same.
    """
    losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    if hardness:
        losses = losses * log_weights_of_negatives(logits, targets, hardness).exp_()
    return losses.sum(), targets.sum(dim=-1).clamp_(min=1).sum()


@torch.no_grad()
def log_weights_of_negatives(logits: Tensor, targets: Tensor, hardness: float) -> Tensor:
    """log w_ij with w_ij ∝ exp(β · logit_ij) over the negatives of each row, 1 on average; 0 for all that is no negative.

    "Contrastive Learning with Hard Negative Samples" (Robinson et al. 2021, section 4, without the correction for false negatives,
    which are known here): a negative counts as often as it would be drawn from a distribution that prefers what is alike. How often
    it is drawn is not to be trained, so the weights are constants; else the loss would fall as negatives that are easy come nearer.

    Args:
        logits: float [n, m].
        targets: [n, m]; negatives are the pairs whose target is 0, but for those with the lowest finite logit, which are left out.
        hardness: β, positive; with cosines divided by a temperature, the greatest and the least weight differ at most by the factor
            exp(2β/τ).
    """
    lowest = torch.finfo(logits.dtype).min
    negatives = (targets == 0) & (logits > lowest)
    scores = (hardness * logits).masked_fill_(~negatives, lowest)
    mean = torch.logsumexp(scores, dim=-1, keepdim=True) - negatives.sum(dim=-1, keepdim=True).clamp(min=1).to(scores.dtype).log()
    return torch.where(negatives, scores - mean, 0)

"""From vectors to words: the negative log-likelihood of a word of a large vocabulary, without the logits of all words at once."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

_AT_ONCE = 2**22  # logits: 16 MiB in float32, so that a part is still in the processor's cache when it is normalised
_KEPT = 2**27  # probabilities kept for the backward pass, 512 MiB in float32; more are computed a second time


class WordLoss(nn.Module):
    """A matrix to the vocabulary and softmax cross-entropy.

    Args:
        size: of the vectors.
        vocabulary_size: number of words.
    """

    def __init__(self, size: int, vocabulary_size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary_size, size).uniform_(-0.1, 0.1))
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))

    def forward(self, vectors: Tensor, words: Tensor) -> Tensor:
        """Negative log-likelihood (nats) of each word given its vector: float32 [t].

        Args:
            vectors: float [t, size].
            words: int64 [t].
        """
        return word_losses(vectors, self.weight, self.bias, words)


def word_losses(vectors: Tensor, weight: Tensor, bias: Tensor, words: Tensor) -> Tensor:
    """Negative log-likelihood (nats) of each word given its vector: float32 [t].

    Args:
        vectors: float [t, size].
        weight, bias: from vectors to the logits of all words, float [V, size] and [V].
        words: int64 [t].
    """
    kind = vectors.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
    keep = torch.is_grad_enabled() and len(vectors) * len(bias) <= _KEPT
    losses: Tensor = _word_losses(vectors.to(dtype), weight.to(dtype), bias.to(dtype), words, keep)
    return losses


class _WordLosses(Function):
    """With p the probabilities of all words and y the right one, the gradient of a loss by its logits is p − y.

    So the probabilities need no change in the backward pass: they are multiplied as they are, and the right words' rows subtracted.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, bias: Tensor, words: Tensor, keep: bool) -> Tensor:
        losses = vectors.new_empty(len(vectors), dtype=torch.float32)
        totals = torch.empty_like(losses)
        shares = weight.new_empty(len(vectors) if keep else 0, len(weight))
        with torch.autocast(vectors.device.type, enabled=False):
            for part in _parts(len(vectors), len(weight)):
                logits = torch.addmm(bias, vectors[part], weight.t()).float()
                totals[part] = logits.logsumexp(dim=1)
                losses[part] = totals[part] - logits.gather(1, words[part, None])[:, 0]
                if keep:
                    torch.exp(logits.sub_(totals[part, None]), out=shares[part])
        ctx.save_for_backward(vectors, weight, bias, words, totals, shares)
        ctx.kept = keep
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        vectors, weight, bias, words, totals, kept = ctx.saved_tensors
        weighted = vectors.float() * gradient[:, None]
        # Sums over very many tokens: in float32 whatever the precision of what is summed.
        of_weight, of_bias = torch.zeros_like(weight, dtype=torch.float32), torch.zeros_like(bias, dtype=torch.float32)
        of_vectors = torch.empty_like(weighted)
        for part in [slice(None)] if ctx.kept else _parts(len(vectors), len(weight)):
            if ctx.kept:
                shares = kept
            else:
                logits = torch.addmm(bias, vectors[part], weight.t()).float()
                shares = logits.sub_(totals[part, None]).exp_().to(weight.dtype)
            of_vectors[part] = shares @ weight
            of_weight += shares.t() @ weighted[part].to(weight.dtype)
            of_bias += shares.t() @ gradient[part].to(weight.dtype)
        of_vectors.sub_(weight[words]).mul_(gradient[:, None])
        of_weight.index_add_(0, words, weighted, alpha=-1)
        of_bias.index_add_(0, words, gradient, alpha=-1)
        return of_vectors.to(vectors.dtype), of_weight.to(weight.dtype), of_bias.to(bias.dtype), None, None


_word_losses: Callable[..., Any] = _WordLosses.apply


def _parts(rows: int, words: int) -> Iterator[slice]:
    """Parts of the rows with about as many logits as are to be in memory at once."""
    size = max(1, _AT_ONCE // words)
    return (slice(first, first + size) for first in range(0, rows, size))

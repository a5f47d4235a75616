"""Means over all pairs of a batch, block by block: memory grows with the rows, not with the pairs."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

BLOCK_PAIRS = 2**24
"""Pairs that are compared at a time; their logits take 64 MiB in float32."""


def row_blocks(rows: int, columns: int, pairs: int = BLOCK_PAIRS) -> list[slice]:
    """Cut a table of `rows` × `columns` into runs of whole rows of at most `pairs` pairs (a single row may have more)."""
    height = max(1, pairs // max(1, columns))
    return [slice(start, min(start + height, rows)) for start in range(0, rows, height)]


def mean_over_blocks(term: Callable[..., tuple[Tensor, Tensor]], blocks: Sequence[slice], *inputs: Tensor | float | None) -> Tensor:
    """(Σ over blocks of the losses) / (Σ over blocks of the weights): a scalar; 0 with zero gradient where no weight is positive.

    Since the result is a scalar, its gradient is known as soon as a block has been computed. It is taken there and then, and
    the block is forgotten: nothing is computed twice, and at no time does more than one block exist.

    Args:
        term: ``term(rows, *inputs)`` gives the sum of the losses and of the weights of a block of rows, two scalars. The
            weights have no gradient.
        blocks: as :func:`row_blocks` cuts them.
        inputs: whole vectors [N, d], temperatures and biases, with a gradient (first order) where they are tensors that require one.
    """
    tensors = [value for value in inputs if isinstance(value, Tensor)]
    differentiable = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    leaves = [value.detach().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value for value in inputs]
    wanted = [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad]
    gradients = [torch.zeros_like(leaf) for leaf in wanted]
    total, weight = tensors[0].new_zeros(()), tensors[0].new_zeros(())
    for rows in blocks:
        with torch.set_grad_enabled(differentiable):
            loss, share = term(rows, *leaves)
        total += loss.detach()
        weight += share
        if differentiable:
            for gradient, part in zip(gradients, torch.autograd.grad(loss, wanted), strict=True):
                gradient += part
    weight = torch.where(weight > 0, weight, 1)
    if not differentiable:
        return total / weight
    attached = [tensor for tensor in tensors if tensor.requires_grad]
    return _WithGradients.apply(total / weight, [gradient.div_(weight) for gradient in gradients], *attached)


class _WithGradients(torch.autograd.Function):
    """A value that is known already, with its gradients."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: list[Tensor], *inputs: Tensor) -> Tensor:
        ctx.save_for_backward(*gradients)
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *(above * gradient for gradient in ctx.saved_tensors)

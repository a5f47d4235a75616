"""What the contrastive objectives share: unit vectors, temperatures, precision and one cross-entropy."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

MINIMUM_TEMPERATURE = 0.01
"""Temperatures below this count as this one: logits of cosines then stay within ±100, far from where float32 exponentials fail."""

SMALLEST_NORM = 1e-12
"""Vectors shorter than this have no direction; they count as zero vectors."""

Parameters = ParamSpec("Parameters")


def full_precision(function: Callable[Parameters, Tensor]) -> Callable[Parameters, Tensor]:
    """Let `function` compute in float32 whatever it is given, autocast included; float64 stays float64."""

    def widen(value: object) -> object:
        narrow = isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)
        return value.float() if narrow else value  # type: ignore[attr-defined]

    @functools.wraps(function)
    def wide(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Tensor:
        device = next(value.device.type for value in (*args, *kwargs.values()) if isinstance(value, Tensor))
        with torch.autocast(device, enabled=False):
            return function(*map(widen, args), **{name: widen(value) for name, value in kwargs.items()})  # type: ignore[arg-type]

    return wide


def unit_vectors(vectors: Tensor) -> Tensor:
    """L2-normalise rows: float [n, d] → [n, d]. A zero vector stays zero and receives no gradient.

    Dividing by a norm clamped from below would multiply a zero vector's gradient by 1 / clamp instead. NaN stays NaN.
    """
    norms = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    zero = norms <= SMALLEST_NORM
    return torch.where(zero, 0, vectors / torch.where(zero, 1, norms))


def same_image_pairs(image_ids: Tensor, rows: slice = slice(None)) -> Tensor:
    """Which rows show the same image: int [n] → bool [rows, n]. A row equals itself; id 0 (no image) equals no other row."""
    own = image_ids[rows]
    same = (own[:, None] == image_ids[None, :]) & (own != 0)[:, None]
    itself(same, rows).fill_(True)
    return same


def itself(pairs: Tensor, rows: slice) -> Tensor:
    """The view [r] of a block [r, n] of a square table, rows `rows` of it, in which each row meets itself."""
    return pairs.diagonal(rows.start or 0)


class _AtLeastMinimum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, temperature: Tensor) -> Tensor:
        ctx.save_for_backward(temperature)
        return temperature.clamp(min=MINIMUM_TEMPERATURE)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (temperature,) = ctx.saved_tensors
        return torch.where((temperature <= MINIMUM_TEMPERATURE) & (gradient > 0), 0, gradient)


def clamp_temperature(temperature: float | Tensor) -> float | Tensor:
    """max(temperature, MINIMUM_TEMPERATURE), a number or a learned tensor of one element.

    At the minimum and below, a gradient that would lower it further is dropped, and one that raises it passes: training can
    lead it back, and it does not wander off where nothing depends on it.
    """
    if isinstance(temperature, Tensor):
        return _AtLeastMinimum.apply(temperature)
    return max(temperature, MINIMUM_TEMPERATURE)


def weighted_cross_entropy(logits: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """−Σ_ij w_ij · log softmax_j(logits_ij) and Σ_ij w_ij, two scalars.

    Args:
        logits: float [n, m]. What has the lowest finite number counts for nothing in the softmax; a row of nothing else gives
            0 instead of NaN, as −inf would.
        weights: float [n, m], not negative, constant; 0 where a pair is left out.
    """
    return -(weights * torch.log_softmax(logits, dim=-1)).sum(), weights.sum()


def leave_out_itself(values: Tensor, rows: slice) -> Tensor:
    """Logits [r, n] of a block `rows` in which no row can choose itself; changes and returns `values`."""
    itself(values, rows).fill_(torch.finfo(values.dtype).min)
    return values


def uniform_targets(positives: Tensor, dtype: torch.dtype) -> Tensor:
    """Spread each row's target evenly over its positives: bool [n, m] → [n, m] with rows that sum to 1 (or 0 without positives)."""
    return positives.to(dtype).div_(positives.sum(dim=-1, keepdim=True).clamp(min=1))
